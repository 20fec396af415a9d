"""Observing and reporting with a real apiserver."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.components.specs import definitions
from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, RequestError
from plimsoll.model import Plan, Snapshot
from plimsoll.model.cluster import Node
from plimsoll.observe.cluster import Observer, read_cluster
from plimsoll.plan import validate
from plimsoll.report import Reporter
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.kube import Kube, Manifest
from tests.e2e.cluster.relay import relaying

pytestmark = pytest.mark.e2e

OURS = "plimsoll.dev/v1alpha1"


@pytest.fixture(scope="module")
def sandbox(sandbox_home: Path) -> Iterator[Sandbox]:
    """A separate cluster for this module, at first without any custom kind."""
    one = Sandbox.named(f"observe-{uuid.uuid4().hex[:6]}")
    one.up(karpenter=False, stop_with_caller=True)
    yield one
    one.down()


@pytest.fixture
def admin(sandbox: Sandbox, kube: Callable[..., Kube]) -> Kube:
    return kube(sandbox)


@pytest.fixture
def connection(sandbox: Sandbox) -> Iterator[Connection]:
    with closing(Connection.open(sandbox.kubeconfig)) as connection:
        yield connection


@pytest.fixture
def kinds_of_ours(admin: Kube) -> None:
    for definition in definitions():
        admin.apply(definition)
        name = definition["metadata"]["name"]
        await_condition(partial(is_established, admin, name), 120, name)


@contextmanager
def observing(connection: Connection) -> Iterator[Observer]:
    observer = Observer(connection)
    observer.start()
    try:
        observer.wait_synced(120)
        yield observer
    finally:
        observer.stop()


def is_established(admin: Kube, name: str) -> bool:
    found = admin.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name) or {}
    conditions = found.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def a_node(name: str, **fields: Any) -> Manifest:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **fields}}


def a_definition(group: str, version: str, kind: str) -> Manifest:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    }


def a_workspace(name: str, **labels: str) -> Manifest:
    template = {"spec": {"containers": [{"name": "server", "image": "example/server:1"}]}}
    spec = {"resource": {"labelSelector": {"matchLabels": labels}}, "inference": {"template": template}}
    return {"apiVersion": OURS, "kind": "Workspace", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def named(objects: tuple[Any, ...], name: str) -> Any:
    return next((each for each in objects if each.name == name), None)


def is_settled(node: Node) -> bool:
    """Whether it is Ready, and the node lifecycle controller has taken its taint from it."""
    return bool(node.conditions) and not node.taints


def report(reporter: Reporter, snapshot: Snapshot) -> None:
    reporter.report(snapshot, Plan(verdicts=validate(snapshot)), datetime.now(UTC))
    reporter.flush()


def test_heartbeats_start_no_round_and_change_nothing(admin: Kube, connection: Connection) -> None:
    admin.apply(a_node("beating"))
    condition = {"type": "Ready", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": None}
    with observing(connection) as observer:

        def beat(second: int) -> None:
            conditions = [{**condition, "lastHeartbeatTime": f"2026-01-01T00:00:0{second}Z"}]
            admin.patch("v1", "Node", "beating", {"status": {"conditions": conditions}}, subresource="status")

        beat(0)  # the condition itself is new
        await_condition(lambda: is_settled(named(observer.snapshot().nodes, "beating")))
        while observer.wait(0.0, 0.0, timeout=0.0):
            pass
        before = named(observer.snapshot().nodes, "beating")
        beat(1)
        beat(2)
        assert not observer.wait(0.0, 0.0, timeout=2.0)
        assert named(observer.snapshot().nodes, "beating") is before
        admin.apply(a_node("after"))
        assert observer.wait(0.0, 0.0, timeout=120.0), "the watch was open"
        assert named(observer.snapshot().nodes, "beating") is before
    admin.delete("v1", "Node", "beating")
    admin.delete("v1", "Node", "after")


def test_the_observer_recovers_from_a_broken_network(admin: Kube, sandbox: Sandbox) -> None:
    server = urlsplit(Connection.open(sandbox.kubeconfig).server)
    with relaying(str(server.hostname), int(server.port or 0)) as relay:
        connection = Connection.open(sandbox.kubeconfig)
        connection.server = f"{server.scheme}://127.0.0.1:{relay.port}"
        with observing(connection) as observer:
            admin.apply(a_node("before"))
            await_condition(lambda: named(observer.snapshot().nodes, "before"))
            relay.closed = True
            relay.cut()
            await_condition(lambda: any("the watch is broken" in each for each in observer.snapshot().warnings))
            admin.delete("v1", "Node", "before")
            admin.apply(a_node("meanwhile"))
            assert named(observer.snapshot().nodes, "before"), "the last known state"
            relay.closed = False
            await_condition(lambda: named(observer.snapshot().nodes, "meanwhile"))
            await_condition(lambda: not named(observer.snapshot().nodes, "before"))
            await_condition(lambda: not any("broken" in each for each in observer.snapshot().warnings))
        connection.close()
    admin.delete("v1", "Node", "meanwhile")


def test_a_kind_is_defined_and_deleted(admin: Kube, connection: Connection) -> None:
    with observing(connection) as observer:
        assert observer.snapshot().node_pools == ()
        definition = a_definition("karpenter.sh", "v1", "NodePool")
        admin.apply(definition)
        await_condition(lambda: is_established(admin, "nodepools.karpenter.sh"))
        pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpus"}, "spec": {}}
        await_condition(lambda: _applied(admin, pool))
        await_condition(lambda: named(observer.snapshot().node_pools, "gpus"))
        admin.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "nodepools.karpenter.sh")
        await_condition(lambda: not observer.snapshot().node_pools)


def _applied(admin: Kube, manifest: Manifest) -> bool:
    """Whether the apiserver accepted the object: after a CRD is established, it may take a moment until it is
    served."""
    try:
        return bool(admin.apply(manifest))
    except Exception:
        return False


def test_an_unknown_account_is_an_error(sandbox: Sandbox, tmp_path: Path) -> None:
    kubeconfig = yaml.safe_load(sandbox.kubeconfig.read_text())
    for user in kubeconfig["users"]:
        user["user"] = {"token": "wrong"}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    connection = Connection.open(tmp_path / "kubeconfig")
    observer = Observer(connection)
    observer.start()
    try:
        with pytest.raises(RequestError, match="Unauthorized") as caught:
            observer.wait_synced(120)
    finally:
        observer.stop()
        connection.close()
    assert "renew the token" in str(caught.value)


@pytest.mark.usefixtures("kinds_of_ours")
def test_a_status_is_written_once_and_follows_the_nodes(admin: Kube, connection: Connection) -> None:
    gfd = {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.count": "1", "nvidia.com/gpu.memory": "15360"}
    admin.apply(a_node("gpu", labels={"pool": "t4", **gfd}))
    admin.patch("v1", "Node", "gpu", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "", "status")
    await_condition(lambda: not (admin.get("v1", "Node", "gpu") or {})["spec"].get("taints"), message="it is untainted")
    admin.apply(a_workspace("served", pool="t4"))
    admin.apply(a_workspace("lost", pool="none"))
    with observing(connection) as observer, closing(Reporter(connection)) as reporter:
        report(reporter, observer.snapshot())
        requests = connection.requests
        await_condition(lambda: all(each.status.conditions for each in observer.snapshot().workspaces))
        assert not observer.wait(0.0, 0.0, timeout=0.0), "our own status wakes nobody"
        report(reporter, observer.snapshot())
        reporter.close()  # events are written
        events = admin.list("events.k8s.io/v1", "Event", "default")
        assert connection.requests - requests <= len(events)
    served, lost = (admin.get(OURS, "Workspace", name) for name in ("served", "lost"))
    assert served is not None
    assert lost is not None
    assert ready(served, "ResourceReady") == ("True", "Accepted")
    assert ready(lost, "ResourceReady") == ("False", "NoMatchingNodes")
    assert served["status"]["targetNodeCount"] == 1
    ours = [each for each in events if each["regarding"]["kind"] == "Workspace"]
    reported = sorted((each["regarding"]["name"], each["type"], each["reason"]) for each in ours)
    assert reported == [("lost", "Warning", "Refused"), ("served", "Normal", "Accepted")]


def ready(workspace: Manifest, kind: str) -> tuple[str, str]:
    (found,) = [each for each in workspace["status"]["conditions"] if each["type"] == kind]
    return found["status"], found["reason"]


@pytest.mark.usefixtures("kinds_of_ours")
def test_the_status_of_a_replaced_workspace_is_not_written(admin: Kube, connection: Connection) -> None:
    admin.apply(a_workspace("twin", pool="none"))
    old = read_cluster(connection)
    admin.delete(OURS, "Workspace", "twin")
    await_condition(lambda: admin.get(OURS, "Workspace", "twin") is None)
    admin.apply(a_workspace("twin", pool="none"))
    with closing(Reporter(connection)) as reporter:
        report(reporter, old)
    new = admin.get(OURS, "Workspace", "twin")
    assert new is not None
    assert "status" not in new


@pytest.mark.usefixtures("kinds_of_ours")
def test_status_shows_the_reported_conditions(admin: Kube, connection: Connection, sandbox: Sandbox) -> None:
    admin.apply(a_workspace("shown", pool="none"))
    with closing(Reporter(connection)) as reporter:
        report(reporter, read_cluster(connection))
    runner = CliRunner()
    arguments = ["status", "--kubeconfig", str(sandbox.kubeconfig), "-n", "default"]
    result = runner.invoke(app, [*arguments, "--output", "json"])
    assert result.exit_code == 0, result.output
    shown = {each["name"]: each for each in orjson.loads(result.stdout)["workspaces"]}["shown"]
    assert (shown["accepted"], shown["reason"]) == (False, "NoMatchingNodes")
    text = runner.invoke(app, arguments).output
    assert "default/shown: No nodes found matching" in text


@pytest.mark.usefixtures("kinds_of_ours")
@pytest.mark.parametrize("depth", [200, 2_000])
def test_a_workspace_that_is_nested_too_deeply_hides_no_other(admin: Kube, connection: Connection, depth: int) -> None:
    """An apiserver takes up to 10,000 levels, also in the managed fields."""
    path = f"/apis/{OURS}/namespaces/default/workspaces"
    nested = b'{"a":' * depth + b"1" + b"}" * depth
    text = orjson.dumps(a_workspace("deep", app="deep")).replace(b'"example/server:1"', nested)
    with observing(connection) as observer, closing(Reporter(connection)) as reporter:
        connection.request("POST", path, orjson.Fragment(text))
        admin.apply(a_workspace("other", app="other"))

        def read() -> bool:
            snapshot = observer.snapshot()
            refused = [each.message for each in snapshot.invalid_workspaces if each.ref.name == "deep"]
            return named(snapshot.workspaces, "other") is not None and any("nested deeper" in each for each in refused)

        await_condition(read, 120, "both Workspaces by a watch")
        snapshot = read_cluster(connection)
        assert named(snapshot.workspaces, "other") is not None
        assert [each.ref.name for each in snapshot.invalid_workspaces] == ["deep"]
        report(reporter, snapshot)
        status = (admin.get(OURS, "Workspace", "deep") or {})["status"]
        assert "nested deeper" in status["conditions"][0]["message"]
        for name in ("deep", "other"):
            admin.delete(OURS, "Workspace", name)


def test_status_without_the_foundation_names_it(byo_sandbox: Sandbox) -> None:
    result = CliRunner().invoke(app, ["status", "--kubeconfig", str(byo_sandbox.kubeconfig)])
    assert isinstance(result.exception, PlimsollError)
    assert "Workspace" in str(result.exception)
    assert "foundation" in str(result.exception)
