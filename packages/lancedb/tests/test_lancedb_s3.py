"""A database on object storage, against a server in this process."""

import boto3
import numpy as np
import pytest
from moto.server import ThreadedMotoServer

from haiku.rag.contracts import CandidateQuery, OpenMode
from haiku.rag.errors import MissingDatabaseError, StorageError
from haiku.rag.storage.lancedb.settings import LanceDBSettings
from haiku.rag.storage.lancedb.storage import LanceDBStorage

pytestmark = [pytest.mark.anyio, pytest.mark.s3]


@pytest.fixture(scope="module")
def endpoint():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def engine(endpoint):
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=endpoint, **keys)
    client.create_bucket(Bucket="bucket")
    options = {
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
        "aws_region": "us-east-1",
        "aws_endpoint": endpoint,
        "allow_http": "true",
    }
    return LanceDBStorage(
        LanceDBSettings.model_validate({"storage_options": options, "read_consistency_interval_seconds": 0})
    )


async def test_a_database_on_s3_is_created_written_and_searched(open_database, engine, make):
    writer = await open_database("s3://bucket/some folder/notes", engine=engine)
    first, second = await writer.write([make("a.md", "alpha"), make("b.md", "beta", pictures={"p": b"x"})])
    reader = await open_database("s3://bucket/some folder/notes", engine=engine, mode=OpenMode.READ)
    found = await reader.search(
        CandidateQuery(search_type="hybrid", depth=5, text="beta", vector=np.ones(8, np.float32))
    )
    assert set(found["document_id"].to_pylist()) == {first.id, second.id}
    assert await reader.picture(second.id, "p") == b"x"
    assert await writer.delete(first.id)
    assert await reader.count_documents(filter=None) == 1
    info = await reader.info()
    assert (info.size_bytes, info.chunks) == (None, 1)


async def test_a_missing_database_on_s3_is_reported_and_not_created(open_database, engine):
    for mode in (OpenMode.READ, OpenMode.WRITE):
        with pytest.raises(MissingDatabaseError, match="there is no database 'notes'") as caught:
            await open_database("s3://bucket/nothing", engine=engine, mode=mode)
        assert "bucket" not in str(caught.value)


async def test_an_unreachable_bucket_is_an_error_that_does_not_name_it(open_database, engine):
    with pytest.raises(StorageError) as caught:
        await open_database("s3://absent-bucket/notes", engine=engine, mode=OpenMode.READ)
    assert "absent-bucket" not in str(caught.value)
    assert "'notes'" in str(caught.value)
