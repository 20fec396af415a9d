"""AWS services on a loopback address, by moto."""

from collections.abc import Iterator
from contextlib import contextmanager

import boto3
from moto.server import ThreadedMotoServer

REGION = "us-east-1"
_KEY = "test"
KEYS = {"AWS_ACCESS_KEY_ID": _KEY, "AWS_SECRET_ACCESS_KEY": _KEY}
"""Environment variables with credentials; moto takes any."""


@contextmanager
def serving_aws() -> Iterator[str]:
    """Yields the address of the services, which run until the context ends."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@contextmanager
def serving_bucket(name: str) -> Iterator[str]:
    """Yields the address of services that have the bucket."""
    with serving_aws() as endpoint:
        client = boto3.client(
            "s3", endpoint_url=endpoint, region_name=REGION, aws_access_key_id=_KEY, aws_secret_access_key=_KEY
        )
        client.create_bucket(Bucket=name)
        yield endpoint


def bucket_url(endpoint: str, path: str) -> str:
    """The address of a backend for states. `path` is that of a folder, the bucket first."""
    return f"s3://{path}?endpoint={endpoint}&s3ForcePathStyle=true&region={REGION}"
