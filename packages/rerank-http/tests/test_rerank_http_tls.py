"""Services behind TLS: which certificates are trusted."""

import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from haiku.rag.contracts import RerankCandidate
from haiku.rag.errors import RerankError
from haiku.rag.rerankers.http.reranker import HttpReranker
from haiku.rag.testing.rerank_server import RerankServer

pytestmark = pytest.mark.anyio

Make = Callable[..., HttpReranker]

CANDIDATES = [RerankCandidate(text="words", source="a", chunk_id="1")]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that vouches for itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "reranker")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "service.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
    return path


@pytest.fixture
def secured(certificate: Path) -> Iterator[RerankServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with RerankServer(tls=context) as running:
        yield running


async def refused(reranker: HttpReranker) -> str:
    with pytest.raises(RerankError) as caught:
        await reranker.rerank("words", CANDIDATES, 1)
    return str(caught.value)


async def test_a_certificate_that_nobody_vouches_for_is_not_trusted(create: Make, secured: RerankServer) -> None:
    reason = await refused(create(base_url=secured.url))
    assert reason == "the service's certificate is not trusted: see rerank_http.verify"
    assert secured.requests == []


async def test_a_certificate_named_in_the_configuration_is_trusted(
    create: Make, secured: RerankServer, certificate: Path
) -> None:
    reranker = create(base_url=secured.url, section={"verify": str(certificate)})
    assert await reranker.rerank("words", CANDIDATES, 1) == [(0, 1.0)]


async def test_verification_can_be_switched_off(create: Make, secured: RerankServer) -> None:
    reranker = create(base_url=secured.url, section={"verify": False})
    assert await reranker.rerank("words", CANDIDATES, 1) == [(0, 1.0)]


async def test_a_folder_may_hold_the_certificates(create: Make, secured: RerankServer, tmp_path: Path) -> None:
    reason = await refused(create(base_url=secured.url, section={"verify": str(tmp_path)}))
    assert reason == "the service's certificate is not trusted: see rerank_http.verify"


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_certificates_that_cannot_be_read_are_told(
    create: Make, secured: RerankServer, tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    reason = await refused(create(base_url=secured.url, section={"verify": str(path)}))
    assert reason == "the certificates of rerank_http.verify could not be read"
