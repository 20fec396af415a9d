"""Responses of the pages without a browser: allowed hosts, headers, and contents."""

import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from plimsoll.errors import PlimsollError
from plimsoll.model import Snapshot
from plimsoll.model.api import WorkspaceRef
from plimsoll.model.kai import NODE_POOL
from plimsoll.ui import Feed, create_app, serve
from tests.builders import a_gpu_node, a_node, a_queue, a_snapshot, a_workspace, an_environment

THREADS = 40
"""Of the server, for pages."""


@dataclass(frozen=True)
class Answer:
    code: int
    text: str
    headers: dict[str, str]


def get(address: str, path: str = "", method: str = "GET", **headers: str) -> Answer:
    request = urllib.request.Request(address + path, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return Answer(answer.status, answer.read().decode(), {k.lower(): v for k, v in answer.headers.items()})
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.read().decode(), {k.lower(): v for k, v in error.headers.items()})


def test_dns_rebinding_is_refused(address: str) -> None:
    refused = get(address, Host="evil.example")
    assert refused.code == 400
    assert "default-src 'none'" in refused.headers["content-security-policy"]
    assert get(address, Host="localhost:1234").code == 200


def test_every_response_forbids_other_sources_and_frames(address: str) -> None:
    for path in ("", "static/ui.js", "nodes/none", "healthz"):
        headers = get(address, path).headers
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert "frame-ancestors 'none'" in headers["content-security-policy"], path


def test_proxies_are_reported_to_pass_events_on_at_once(address: str) -> None:
    with urllib.request.urlopen(f"{address}events", timeout=10) as events:
        assert events.headers["x-accel-buffering"] == "no"
        assert events.headers["cache-control"] == "no-store"
        assert events.readline().startswith(b"data: ")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nothing_can_be_changed(address: str, method: str) -> None:
    for path in ("", "plan", "workspaces/assistants/assistant"):
        assert get(address, path, method).code == 405


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nodes/none", "there is no node &#39;none&#39; with GPUs"),
        ("queues/none", "there is no Queue &#39;none&#39;"),
        ("workspaces/a/b", "there is no Workspace a/b"),
        ("why/node/none", "node &#39;none&#39; not found"),
        ("why/pod/a/none", "a/none"),
        ("why/workspace/a/b", "there is no Workspace a/b"),
        ("why/else/b", "there is no page for &#39;else&#39;"),
        ("why/pod/b", "there is no page for &#39;pod&#39;"),
        ("why/node/a/b", "there is no page for &#39;node&#39;"),
        ("else", "Not Found"),
    ],
)
def test_an_unknown_page_is_an_error(address: str, path: str, message: str) -> None:
    answer = get(address, path)
    assert (answer.code, message in answer.text) == (404, True)


@pytest.mark.parametrize(
    "query", ["?page=x&open=%00", "?page=-1", "?open=" + "a" * 3000, "?q=%3Cscript%3E", "?type=%FF"]
)
def test_every_query_has_a_response(address: str, query: str) -> None:
    answer = get(address, query)
    assert answer.code == 200
    assert "<script>" not in answer.text


def test_names_are_escaped(example: Snapshot) -> None:
    snapshot = example.model_copy(update={"warnings": ("<img src=x onerror=alert(1)>",)})
    feed = Feed(snapshot)
    with serve(create_app(feed), "127.0.0.1", 0) as address:
        text = get(address).text
        feed.close()
    assert "<img" not in text
    assert "&lt;img" in text


def test_a_node_of_shared_devices_has_a_page() -> None:
    node = a_gpu_node("parts").model_copy(update={"allocatable": {"nvidia.com/gpu.shared": "8"}})
    feed = Feed(a_snapshot(node))
    with serve(create_app(feed), "127.0.0.1", 0) as address:
        cluster, page = get(address).text, get(address, "nodes/parts").text
        feed.close()
    assert "0 of 8 gpu.shared in use" in cluster
    assert "0 of 8 gpu.shared in use" in page


def test_the_page_of_a_workspace_lists_what_a_policy_withholds() -> None:
    policies = {"rules": {"image-digest": {"options": {"required": True}}}}
    workspace = a_workspace(preset="phi-4-mini-instruct")
    feed = Feed(a_snapshot(workspace, a_node(), environment=an_environment(policies=policies)))
    with serve(create_app(feed), "127.0.0.1", 0) as address:
        text = get(address, f"workspaces/{workspace.namespace}/{workspace.name}").text
        feed.close()
    assert "Withheld by policy" in text
    assert f"Deployment {workspace.namespace}/{workspace.name} is not applied" in text
    assert f"+ Deployment {workspace.name}" not in text


def test_a_workspace_is_shown_also_where_its_events_cannot_be_read(example: Snapshot) -> None:
    def unreachable(_: WorkspaceRef) -> list[dict[str, Any]]:
        raise PlimsollError("the cluster cannot be reached")

    feed = Feed(example)
    with serve(create_app(feed, events=unreachable), "127.0.0.1", 0) as address:
        answer = get(address, "workspaces/assistants/assistant")
        feed.close()
    assert answer.code == 200
    assert "The Events cannot be read: the cluster cannot be reached" in answer.text


def test_slow_events_do_not_delay_the_probe() -> None:
    answered, waiting = threading.Event(), threading.Semaphore(0)

    def slow(_: WorkspaceRef) -> list[dict[str, Any]]:
        waiting.release()
        answered.wait(120)
        return []

    feed = Feed(a_snapshot(a_workspace("slow", selector={})))
    with serve(create_app(feed, events=slow), "127.0.0.1", 0) as address, ThreadPoolExecutor(THREADS) as browsers:
        answered.set()
        get(address, "workspaces/default/slow")  # compiles the template, once
        answered.clear()
        pages = [browsers.submit(get, address, "workspaces/default/slow") for _ in range(THREADS)]
        for _ in range(1 + THREADS):
            assert waiting.acquire(timeout=120)
        assert get(address, "healthz").text == "ok"
        assert not any(each.done() for each in pages)
        answered.set()
        assert {each.result().code for each in pages} == {200}
        feed.close()


def test_a_node_with_labels_alone_is_not_shown_and_the_page_says_what_is_missing() -> None:
    feed = Feed(a_snapshot(a_gpu_node("without-plugin").model_copy(update={"allocatable": {}})))
    with serve(create_app(feed), "127.0.0.1", 0) as address:
        text = get(address).text
        feed.close()
    assert "without-plugin" not in text
    assert "which its device plugin announces" in text


def test_an_address_in_use_is_an_error_for_people(address: str, feed: Feed) -> None:
    port = int(address.rstrip("/").rpartition(":")[2])
    with pytest.raises(PlimsollError, match=str(port)), serve(create_app(feed), "127.0.0.1", port):
        pass


def test_a_failing_view_shows_the_error(example: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise PlimsollError("the plan failed", "change this field")

    monkeypatch.setattr("plimsoll.ui.state.plan_round", fail)
    feed = Feed(example)
    with serve(create_app(feed), "127.0.0.1", 0) as address:
        answer, cluster = get(address, "plan"), get(address)
        feed.close()
    assert (answer.code, cluster.code) == (500, 200), "other views are shown"
    assert "the plan failed" in answer.text
    assert "change this field" in answer.text
    assert "Not found" not in answer.text


def test_pages_name_the_shard_of_nodes_and_queues() -> None:
    workers = {NODE_POOL: "workers"}
    queues = [a_queue("usual", parent=""), a_queue("ours", parent="").model_copy(update={"labels": workers})]
    feed = Feed(a_snapshot(a_gpu_node("plain"), a_gpu_node("special", more_labels=workers), *queues))
    with serve(create_app(feed), "127.0.0.1", 0) as address:
        pages = {
            path: get(address, path).text
            for path in ("", "queues", "nodes/plain", "nodes/special", "queues/usual", "queues/ours")
        }
        feed.close()
    assert all(pages[path].count("shard workers") == 1 for path in ("", "queues"))
    assert all("<dt>Shard</dt><dd>workers</dd>" in pages[path] for path in ("nodes/special", "queues/ours"))
    assert all("Shard" not in pages[path] for path in ("nodes/plain", "queues/usual"))
