"""Nodes of a list are created and awaited as long as there is progress, which is shown."""

import io
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from rich.console import Console

from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, RequestError
from plimsoll.sandbox import making_nodes
from plimsoll.sandbox.nodes import STALL_SECONDS, ListedNode, NodeCounts, gpu_models, make_nodes_with, node_manifest

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
WATCH_SECONDS = 50.0
"""Seconds by which a watch of the slow cluster advances its clock; less than a deadline."""


class SlowCluster:
    """The apiserver of a Connection. In each watch, as many nodes become Ready as the next number of `comes`, then
    none. A watch shows nothing before all `number` nodes were created or one was refused."""

    def __init__(self, number: int, comes: list[int], *, present: int = 0, refused: str = "") -> None:
        self.seconds = 0.0
        self.watches = 0
        self.expired = 0
        """Number of watches that are refused because their version has expired."""
        self._number, self._comes, self._refused = number, iter(comes), refused
        self._nodes = {each.name: node_manifest(each) for each in listed(present)}
        self._all_asked = threading.Event()
        self.slices: dict[str, str] = {}
        """UID of the node of each ResourceSlice."""

    def request(self, method: str, path: str, body: Any = None, *, retry_throttled: bool = False) -> dict[str, Any]:
        if path == "/apis/resource.k8s.io/v1/resourceslices":
            (owner,) = body["metadata"]["ownerReferences"]
            self.slices[body["spec"]["nodeName"]] = owner["uid"]
            return {}
        assert path == "/api/v1/nodes"
        if method == "GET":
            return {"items": list(self._nodes.values()), "metadata": {"resourceVersion": "1"}}
        name = body["metadata"]["name"]
        if name == self._refused:
            self._all_asked.set()
            raise RequestError(403, "Forbidden", f"nodes {name} is forbidden")
        self._nodes[name] = body
        if len(self._nodes) == self._number:
            self._all_asked.set()
        return {"metadata": {"uid": f"uid-{name}"}}

    @contextmanager
    def stream(self, path: str, *, query: Mapping[str, str], read_timeout: float) -> Iterator[SimpleNamespace]:
        assert query["watch"] == "true"
        if self.expired:
            self.expired -= 1
            raise RequestError(410, "Expired", "too old resource version")
        yield SimpleNamespace(stream=lambda _size: self._events())

    def _events(self) -> Iterator[bytes]:
        assert self._all_asked.wait(120)
        self.watches += 1
        self.seconds += WATCH_SECONDS
        late = [node for node in list(self._nodes.values()) if node["status"] is not READY]
        for node in late[: next(self._comes, 0)]:
            node["status"] = READY
        for node in list(self._nodes.values()):
            shown = {**node, "metadata": {**node["metadata"], "resourceVersion": "2"}}
            yield orjson.dumps({"type": "MODIFIED", "object": shown}) + b"\n"


def listed(number: int) -> list[ListedNode]:
    return [ListedNode(f"n-{each}", 1000, 1024, 0, None) for each in range(number)]


def make(
    cluster: SlowCluster, number: int, on_progress: Callable[[int, int], None] = lambda _m, _r: None
) -> NodeCounts:
    return make_nodes_with(cast(Connection, cluster), listed(number), on_progress, lambda: cluster.seconds)


def test_nodes_are_awaited_as_long_as_there_is_progress() -> None:
    cluster = SlowCluster(20, [1] * 20)

    assert make(cluster, 20) == NodeCounts(20, 0)

    assert cluster.seconds == 20 * WATCH_SECONDS > 5 * STALL_SECONDS


def test_without_progress_the_wait_ends_with_the_number_of_missing_nodes() -> None:
    cluster = SlowCluster(20, [1, 0, 2])

    with pytest.raises(PlimsollError, match=r"17 of 20 nodes are not Ready, such as n-10, .* in 120 s") as ended:
        make(cluster, 20)

    assert "plimsoll sandbox logs kwok" in str(ended.value)
    # Two nodes became Ready in the third watch; the deadline counts from there.
    assert 3 * WATCH_SECONDS + STALL_SECONDS <= cluster.seconds < 4 * WATCH_SECONDS + STALL_SECONDS


def test_existing_nodes_are_awaited_and_not_created() -> None:
    cluster = SlowCluster(5, [2, 3], present=3)

    assert make(cluster, 5) == NodeCounts(2, 3)


def test_devices_that_pods_claim_are_published_when_all_nodes_are_ready() -> None:
    cluster = SlowCluster(5, [5], present=1)
    nodes = [each._replace(gpus=2, model=gpu_models()["T4"], driver="gpu.nvidia.com") for each in listed(5)]
    make_nodes_with(cast(Connection, cluster), nodes, lambda _m, _r: None, lambda: cluster.seconds)
    assert cluster.slices == {f"n-{number}": f"uid-n-{number}" for number in range(1, 5)}, "none of an existing node"


def test_a_watch_from_an_expired_version_starts_again() -> None:
    cluster = SlowCluster(5, [2, 3])
    cluster.expired = 2

    assert make(cluster, 5) == NodeCounts(5, 0)


def test_a_refused_node_ends_the_wait_with_the_refusal() -> None:
    with pytest.raises(RequestError, match="nodes n-3 is forbidden"):
        make(SlowCluster(20, [1] * 20, refused="n-3"), 20)


def test_progress_counts_up_to_the_end() -> None:
    reported: list[tuple[int, int]] = []

    make(SlowCluster(10, [4, 0, 6]), 10, lambda made, ready: reported.append((made, ready)))

    assert reported == sorted(reported)
    assert reported[-1] == (10, 10)
    assert (10, 4) in reported


def shown(console: Console, *moments: tuple[float, int, int]) -> str:
    """The progress that is shown for 1,000 nodes, if this many are created and Ready at these seconds."""
    now = 0.0
    with making_nodes(console, 1000, lambda: now) as on_progress:
        for second, made, ready in moments:
            now = second
            on_progress(made, ready)
    return cast(io.StringIO, console.file).getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_less_than_two_seconds_show_no_progress(terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=terminal)

    assert shown(console, (0.0, 1000, 3), (1.9, 1000, 1000)) == ""


def test_without_a_terminal_a_line_is_printed_at_intervals() -> None:
    console = Console(file=io.StringIO(), force_terminal=False)

    lines = shown(console, *((second, 1000, second) for second in range(30))).splitlines()

    assert lines == [f"1000 of 1000 nodes created, {number} Ready" for number in (2, 12, 22)]


def test_a_terminal_shows_progress_bars() -> None:
    text = shown(Console(file=io.StringIO(), force_terminal=True, width=100), (2.0, 700, 300))

    assert "700/1000" in text
    assert "300/1000" in text
