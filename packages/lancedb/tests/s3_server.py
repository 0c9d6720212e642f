"""A real S3 server over HTTP for the tests, which can be told to misbehave."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

KEYS = {"aws_access_key_id": "AKIATHEKEYID", "aws_secret_access_key": "the-secret-key"}
NAME = "bucket"
WSGI = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Bucket:
    """The bucket as its owner sees it."""

    def __init__(self, endpoint: str) -> None:
        self._client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **KEYS)
        self._client.create_bucket(Bucket=NAME)

    def objects(self) -> set[str]:
        """The names of all objects."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=NAME)
        return {entry["Key"] for page in pages for entry in page.get("Contents", [])}

    def bytes(self) -> bytes:
        """Everything that is stored, names included."""
        bodies = [self._client.get_object(Bucket=NAME, Key=key)["Body"].read() for key in sorted(self.objects())]
        return b"".join([*(key.encode() for key in sorted(self.objects())), *bodies])

    def empty(self) -> None:
        """Remove everything."""
        for key in self.objects():
            self._client.delete_object(Bucket=NAME, Key=key)


class Server:
    """One server. `careless` ignores the condition of conditional writes, as some stores do."""

    def __init__(self, *, careless: bool = False) -> None:
        self._app: WSGI = DomainDispatcherApplication(create_backend_app)
        self._careless = careless
        self._refuses_writes = False
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self.bucket = Bucket(self.endpoint)

    @contextmanager
    def refusing_writes(self) -> Iterator[None]:
        """Answer every write with 403 meanwhile."""
        self._refuses_writes = True
        yield
        self._refuses_writes = False

    def stop(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if self._careless:
            environment.pop("HTTP_IF_NONE_MATCH", None)
        if self._refuses_writes and environment["REQUEST_METHOD"] not in ("GET", "HEAD"):
            start("403 Forbidden", [("Content-Type", "application/xml")])
            return [f"<Error><Code>AccessDenied</Code><RequestId>{uuid4()}</RequestId></Error>".encode()]
        return self._app(environment, start)


def options(endpoint: str) -> dict[str, str]:
    """What `lancedb.storage_options` has to say to reach it."""
    return {**KEYS, "aws_region": "us-east-1", "aws_endpoint": endpoint, "allow_http": "true"}
