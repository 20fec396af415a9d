"""Makes the nodes of a list in a sandbox and awaits that they are Ready."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, RequestError
from plimsoll.sandbox.node_list import ListedNode, manifest

READY_SECONDS: Final = 180
_NODES: Final = "/api/v1/nodes"
_WORKERS: Final = 8


class Made(NamedTuple):
    """How many nodes were made, and how many were there before."""

    created: int
    present: int


def make(
    kubeconfig: Path, nodes: Sequence[ListedNode], on_progress: Callable[[int, int], None] = lambda _c, _r: None
) -> Made:
    """Makes those of `nodes` that are missing; returns when all are Ready. Nodes that exist are left as they are.

    `on_progress` gets how many exist and how many are Ready. Raises PlimsollError if the apiserver refuses one, or
    if they are not Ready within READY_SECONDS.
    """
    with closing(Connection.open(kubeconfig)) as connection:
        return _make(connection, nodes, on_progress)


def _make(connection: Connection, nodes: Sequence[ListedNode], on_progress: Callable[[int, int], None]) -> Made:
    wanted = {n.name for n in nodes}
    listed = connection.request("GET", _NODES, patient=True)
    there = {n["metadata"]["name"] for n in listed["items"]} & wanted
    ready = {n["metadata"]["name"] for n in listed["items"] if _is_ready(n)} & wanted
    missing = [n for n in nodes if n.name not in there]
    with ThreadPoolExecutor(_WORKERS) as pool:
        for number, _ in enumerate(pool.map(lambda n: _create(connection, n), missing), start=1):
            on_progress(len(there) + number, len(ready))
    for event in _events(connection, listed["metadata"]["resourceVersion"], wanted, ready):
        if event["type"] in ("ADDED", "MODIFIED") and _is_ready(event["object"]):
            ready.update({event["object"]["metadata"]["name"]} & wanted)
            on_progress(len(wanted), len(ready))
    return Made(len(missing), len(there))


def _create(connection: Connection, node: ListedNode) -> None:
    try:
        connection.request("POST", _NODES, manifest(node))
    except RequestError as error:
        # Another `sandbox nodes` may have made it meanwhile.
        if error.reason != "AlreadyExists":
            raise


def _events(
    connection: Connection, version: str, wanted: Collection[str], ready: Collection[str]
) -> Iterator[dict[str, Any]]:
    """Watch events of nodes until all that are wanted are in `ready`."""
    deadline = time.monotonic() + READY_SECONDS
    while len(ready) < len(wanted):
        left = int(deadline - time.monotonic())
        if left <= 0:
            late = sorted(set(wanted) - set(ready))
            raise PlimsollError(
                f"{len(late)} of {len(wanted)} nodes are not Ready after {READY_SECONDS} s, such as {late[0]}.",
                "See `plimsoll sandbox status` and `plimsoll sandbox logs kwok`.",
            )
        query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": str(left)}
        with connection.stream(_NODES, query=query, read_timeout=left + 5) as answer:
            for line in _lines(answer.stream(65536)):
                event: dict[str, Any] = orjson.loads(line)
                if event["type"] == "ERROR":
                    raise PlimsollError(f"The watch of nodes broke: {event['object'].get('message')}.", "Run it again.")
                version = event["object"]["metadata"]["resourceVersion"]
                yield event
                if len(ready) >= len(wanted):
                    return


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
