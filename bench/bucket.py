"""An S3 bucket on this machine, by moto, that counts its requests."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Self

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment
    from mypy_boto3_s3 import S3Client

NAME = "states"
REGION = "us-east-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench"}
"""Moto accepts any credentials."""
_KINDS = {"GET": "reads", "HEAD": "reads", "PUT": "writes", "POST": "writes", "DELETE": "deletes"}


@dataclass(frozen=True)
class Traffic:
    """Requests by kind (`reads`, `lists`, `writes`, `deletes`) and bytes of their bodies, to and from the bucket."""

    requests: Counter[str] = field(default_factory=Counter)
    received: int = 0
    sent: int = 0

    def __sub__(self, before: Self) -> "Traffic":
        return Traffic(self.requests - before.requests, self.received - before.received, self.sent - before.sent)

    @property
    def total(self) -> int:
        return self.requests.total()


class Bucket:
    """A bucket that exists while its server runs."""

    def __init__(self, port: int, counting: "_Counting") -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self.url = f"s3://{NAME}?endpoint={self.endpoint}&s3ForcePathStyle=true&region={REGION}"
        self.client: S3Client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        )
        self._counting = counting

    def traffic(self) -> Traffic:
        """Traffic since the start of the server."""
        return self._counting.traffic()

    def objects(self) -> dict[str, int]:
        """Size of each object in bytes."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=NAME)
        return {each["Key"]: each["Size"] for page in pages for each in page.get("Contents", [])}


@contextmanager
def a_bucket() -> Iterator[Bucket]:
    """Context manager: an empty bucket, whose server is a thread of this process."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    counting = _Counting(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, counting, threaded=True)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        bucket = Bucket(server.server_port, counting)
        bucket.client.create_bucket(Bucket=NAME)
        yield bucket
    finally:
        server.shutdown()
        thread.join()


class _Counting:
    """A WSGI application that counts the requests to another."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application
        self._lock = Lock()
        self._traffic = Traffic()

    def traffic(self) -> Traffic:
        with self._lock:
            return Traffic(Counter(self._traffic.requests), self._traffic.received, self._traffic.sent)

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        body = b"".join(self._application(environ, start_response))
        kind = "lists" if "list-type=" in environ["QUERY_STRING"] else _KINDS[environ["REQUEST_METHOD"]]
        received = int(environ.get("CONTENT_LENGTH") or 0)
        with self._lock:
            before = self._traffic
            self._traffic = Traffic(
                before.requests + Counter([kind]), before.received + received, before.sent + len(body)
            )
        return [body]


def as_figures(traffic: Traffic) -> dict[str, Any]:
    return {
        "requests": traffic.total,
        **{kind: traffic.requests[kind] for kind in ("reads", "lists", "writes", "deletes")},
        "bytesWritten": traffic.received,
        "bytesRead": traffic.sent,
    }
