"""Creates the nodes of a list in a sandbox and waits until they are Ready."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, RequestError
from plimsoll.sandbox.nodes.listed import ListedNode, node_manifest, slice_manifest

STALL_SECONDS: Final = 120.0
_NODES: Final = "/api/v1/nodes"
_SLICES: Final = "/apis/resource.k8s.io/v1/resourceslices"
_WORKERS: Final = 8
_WATCH_SECONDS: Final = 5
"""Seconds of one watch. After each, the deadline and the creations are checked."""


class NodeCounts(NamedTuple):
    """Number of nodes that were created, and of nodes that existed before."""

    created: int
    present: int


class AwaitedNodes:
    """Which nodes of a list exist and are Ready, and since when that has not changed.

    There is no deadline for all of them, so any number of nodes may start as slowly as the machine allows. `clock`
    returns seconds.
    """

    def __init__(self, names: Collection[str], clock: Callable[[], float] = time.monotonic) -> None:
        self.names = frozenset(names)
        self.made: set[str] = set()
        self.ready: set[str] = set()
        self._clock = clock
        self._progressed = clock()

    def see(self, node: Mapping[str, Any]) -> None:
        """Updates the state from a Node object. A node that was Ready once counts as Ready."""
        name = node["metadata"]["name"]
        if name not in self.names:
            return
        before = len(self.made) + len(self.ready)
        self.made.add(name)
        if _is_ready(node):
            self.ready.add(name)
        if len(self.made) + len(self.ready) > before:
            self._progressed = self._clock()

    @property
    def are_ready(self) -> bool:
        return self.ready == self.names

    def check(self) -> None:
        """Raises PlimsollError if no node was created or became Ready for STALL_SECONDS."""
        if self.are_ready or self._clock() - self._progressed < STALL_SECONDS:
            return
        late = sorted(self.names - self.ready)
        raise PlimsollError(
            f"{len(late)} of {len(self.names)} nodes are not Ready, such as {late[0]}, and in {STALL_SECONDS:g} s"
            " no further node was created or became Ready.",
            "See `plimsoll sandbox status` and `plimsoll sandbox logs kwok`.",
        )


def make_nodes(
    kubeconfig: Path, nodes: Sequence[ListedNode], on_progress: Callable[[int, int], None] = lambda _m, _r: None
) -> NodeCounts:
    """Creates the missing ones of `nodes`, and returns when all are Ready. Existing nodes are not changed.

    `on_progress` is called at least every few seconds with the number of existing and of Ready nodes. Raises
    PlimsollError if the apiserver refuses a node, or if no further node was created or became Ready for STALL_SECONDS.
    """
    with closing(Connection.open(kubeconfig)) as connection:
        return make_nodes_with(connection, nodes, on_progress)


def make_nodes_with(
    connection: Connection,
    nodes: Sequence[ListedNode],
    on_progress: Callable[[int, int], None],
    clock: Callable[[], float] = time.monotonic,
) -> NodeCounts:
    """As `make_nodes`, with an open connection. `clock` returns seconds."""
    awaited = AwaitedNodes({node.name for node in nodes}, clock)
    version = _list(connection, awaited)
    missing = [node for node in nodes if node.name not in awaited.made]
    with ThreadPoolExecutor(_WORKERS) as pool:
        creations = [pool.submit(_create, connection, node) for node in missing]
        try:
            while not awaited.are_ready:
                version = _follow(connection, version, awaited, on_progress)
                _raise_failure(creations)
                awaited.check()
                on_progress(len(awaited.made), len(awaited.ready))
            for creation in creations:
                creation.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return NodeCounts(len(missing), len(nodes) - len(missing))


def _create(connection: Connection, node: ListedNode) -> None:
    try:
        made = connection.request("POST", _NODES, node_manifest(node))
        if node.driver:
            connection.request("POST", _SLICES, slice_manifest(node, made["metadata"]["uid"]))
    except RequestError as error:
        # Another `sandbox nodes` may have created it meanwhile.
        if error.reason != "AlreadyExists":
            raise


def _raise_failure(creations: Sequence[Future[None]]) -> None:
    for creation in creations:
        if creation.done():
            creation.result()


def _list(connection: Connection, awaited: AwaitedNodes) -> str:
    """Passes the existing nodes to `awaited`. Returns the resource version to watch from."""
    listed = connection.request("GET", _NODES, retry_throttled=True)
    for node in listed["items"]:
        awaited.see(node)
    version: str = listed["metadata"]["resourceVersion"]
    return version


def _follow(
    connection: Connection, version: str, awaited: AwaitedNodes, on_progress: Callable[[int, int], None]
) -> str:
    """Passes the events of a short watch to `awaited`. Returns the resource version to continue from."""
    query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": str(_WATCH_SECONDS)}
    try:
        with connection.stream(_NODES, query=query, read_timeout=_WATCH_SECONDS + 30) as answer:
            for line in _lines(answer.stream(65536)):
                event: dict[str, Any] = orjson.loads(line)
                if event["type"] == "ERROR":
                    raise _broken(event["object"])
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] in ("ADDED", "MODIFIED"):
                    awaited.see(event["object"])
                    on_progress(len(awaited.made), len(awaited.ready))
                if awaited.are_ready:
                    break
    except RequestError as error:
        # After many writes, the version may be too old to continue from.
        if error.code != 410:
            raise
        return _list(connection, awaited)
    return version


def _broken(status: Mapping[str, Any]) -> RequestError:
    """The error of a watch that ended with a Status."""
    message = f"The watch of nodes failed: {status.get('message')}."
    return RequestError(status.get("code", 0), status.get("reason", ""), message, "Run it again.")


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
