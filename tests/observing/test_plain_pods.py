"""Pods without GPUs: what they use of nodes is summed up, and a change starts a round only if it can affect a plan."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.kube import Connection, RequestError
from plimsoll.model.cluster import HostLoad
from plimsoll.observe.cluster import DAEMON_SETS, NODES, PODS, Observer, Stores, list_objects, read_cluster
from tests.awaiting import await_condition
from tests.builders import a_plain_manifest
from tests.observing.apiserver import FakeApiserver
from tests.observing.test_following import refusal, start
from tests.placement.rules import HOST, ZONE, apart, near, spread

GPUS: dict[str, Any] = {"status": {"allocatable": {"nvidia.com/gpu": "8", "cpu": "96"}}}


def put(stores: Stores, manifest: dict[str, Any]) -> bool:
    key, entry = stores.pods.read(manifest)
    return stores.pods.put(key, entry)


def drop(stores: Stores, manifest: dict[str, Any]) -> bool:
    key, entry = stores.pods.read(manifest)
    return stores.pods.remove(key, entry)


def add_node(stores: Stores, name: str = "node", **fields: Any) -> None:
    key, entry = stores.nodes.read({"metadata": {"name": name}, **fields})
    stores.nodes.put(key, entry)


def a_share(name: str = "share", node: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "team", "annotations": {"gpu-fraction": "0.5"}}
    return {"metadata": metadata, "spec": {"nodeName": node, "containers": [{"name": "main"}]}}


def load(stores: Stores, node: str = "node") -> tuple[int, int, int]:
    found = stores.snapshot().host_loads.get(node, HostLoad())
    return found.cpu_milli, found.memory_mib, found.pods


def test_loads_of_plain_pods_are_summed_by_node() -> None:
    stores = Stores()
    put(stores, a_plain_manifest("a", cpu="500m", memory="1Gi"))
    put(stores, a_plain_manifest("b", cpu="2", daemon_set="agent"))
    put(stores, a_plain_manifest("c", "other", cpu="7"))
    put(stores, a_plain_manifest("d", "", cpu="9"))
    assert load(stores) == (2500, 1024, 2)
    assert load(stores, "other") == (7000, 0, 1)
    assert set(stores.snapshot().host_loads) == {"node", "other"}, "a pod on no node takes nothing"
    assert stores.snapshot().host_loads["node"].daemon_sets == {"kube-system/agent"}
    assert stores.snapshot().pods == ()


def test_changed_finished_and_deleted_pods_are_subtracted() -> None:
    stores = Stores()
    put(stores, a_plain_manifest("a", cpu="1"))
    put(stores, a_plain_manifest("a", cpu="3"))
    assert load(stores) == (3000, 0, 1)
    put(stores, a_plain_manifest("b", cpu="1"))
    drop(stores, a_plain_manifest("b", cpu="1"))
    assert load(stores) == (3000, 0, 1)
    ended = a_plain_manifest("a", cpu="3") | {"status": {"phase": "Succeeded"}}
    drop(stores, a_plain_manifest("a", cpu="3"))
    put(stores, ended)
    assert load(stores) == (0, 0, 0)


def test_a_pod_that_becomes_a_share_pod_counts_once() -> None:
    stores = Stores()
    put(stores, a_plain_manifest("a", cpu="1"))
    manifest = a_plain_manifest("a", cpu="1")
    manifest["metadata"]["annotations"] = {"gpu-fraction": "0.5"}
    assert put(stores, manifest)
    assert load(stores) == (0, 0, 0)
    assert [pod.name for pod in stores.snapshot().pods] == ["a"]
    put(stores, a_plain_manifest("a", cpu="1"))
    assert load(stores) == (1000, 0, 1)
    assert stores.snapshot().pods == ()


@pytest.mark.parametrize(
    ("node", "waits", "woken"),
    [
        pytest.param(GPUS, True, True, id="a node with GPUs while a pod waits"),
        pytest.param(GPUS, False, False, id="no pod waits"),
        pytest.param({"status": {"allocatable": {"cpu": "96"}}}, True, False, id="a node without GPUs"),
    ],
)
def test_plain_pods_start_a_round_only_if_they_can_affect_a_plan(
    node: dict[str, Any], waits: bool, woken: bool
) -> None:
    stores = Stores()
    add_node(stores, **node)
    put(stores, a_share(node="" if waits else "node"))
    version = stores.version
    manifest = a_plain_manifest("a", cpu="1")
    assert put(stores, manifest) is woken
    assert (stores.version > version) is woken
    version = stores.version
    assert not put(stores, a_plain_manifest("a", cpu="1")), "nothing that counts changed"
    assert stores.version == version
    assert drop(stores, manifest) is woken


def a_web_pod(name: str = "web", node: str = "cpu-node", rules: dict[str, Any] | None = None) -> dict[str, Any]:
    """A pod without GPU whose application is `web`."""
    manifest = a_plain_manifest(name, node, namespace="team")
    manifest["metadata"]["labels"] = {"app": "web"}
    manifest["spec"] |= {"affinity": rules or {}}
    return manifest


def test_what_rules_see_of_a_plain_pod_is_kept_once_for_equal_pods() -> None:
    stores = Stores()
    put(stores, a_web_pod("w1", "a", apart("web")))
    put(stores, a_web_pod("w2", "b", apart("web")))
    put(stores, a_web_pod("w3", "a", near("db")))
    loads = stores.snapshot().host_loads
    (one,) = loads["a"].repelling
    assert loads["b"].neighbours == (one,)
    assert loads["b"].neighbours[0] is one
    assert (one.namespace, one.labels, one.deleting) == ("team", {"app": "web"}, False)
    assert [rule.key for rule in one.rules] == [HOST]
    assert len(loads["a"].neighbours) == 2


@pytest.mark.parametrize(
    ("of_share", "of_plain", "woken"),
    [
        ({}, {}, False),
        (apart("web"), {}, True),
        (spread("web", ZONE), {}, True),
        (apart("db"), {}, False),
        ({}, apart("share", ZONE), True),
        ({}, apart("share"), False),
    ],
    ids=["no-rule", "selected", "counted", "not-selected", "keeps-away-of-the-zone", "keeps-away-of-its-node"],
)
def test_plain_pods_on_nodes_without_gpus_start_a_round_if_rules_see_them(
    of_share: dict[str, Any], of_plain: dict[str, Any], woken: bool
) -> None:
    stores = Stores()
    add_node(stores, "cpu-node")
    waiting = a_share()
    waiting["spec"] |= {"affinity": of_share, "topologySpreadConstraints": of_share.get("topologySpreadConstraints")}
    put(stores, waiting)
    web = a_web_pod(rules=of_plain)
    for change in (put, drop):
        version = stores.version
        assert change(stores, web) is woken
        assert (stores.version > version) is woken
    relabeled = a_web_pod(rules=of_plain)
    relabeled["metadata"]["labels"] = {"app": "other"}
    put(stores, relabeled)
    assert put(stores, web) is woken
    drop(stores, waiting)
    assert not drop(stores, web), "no pod waits"


def test_changes_before_the_wait_are_included() -> None:
    stores = Stores()
    add_node(stores, **GPUS)
    assert load(stores) == (0, 0, 0)
    put(stores, a_plain_manifest("a", cpu="1"))
    put(stores, a_share())
    assert load(stores) == (1000, 0, 1)


def test_the_snapshot_value_is_the_same_object_without_changes() -> None:
    stores = Stores()
    put(stores, a_plain_manifest("a", "a", cpu="1"))
    put(stores, a_plain_manifest("b", "b", cpu="1"))
    first = stores.pods.loads()
    assert stores.pods.loads() is first
    put(stores, a_plain_manifest("c", "b", cpu="1"))
    assert stores.pods.loads()["a"] is first["a"]
    assert stores.pods.loads() is not first


def test_a_new_list_replaces_the_known_pods(cluster: FakeApiserver, connection: Connection) -> None:
    stores = Stores()
    add_node(stores, **GPUS)
    put(stores, a_share())
    put(stores, a_plain_manifest("gone", cpu="4"))
    for name in ("x", "y"):
        manifest = a_plain_manifest(name, cpu="1")
        cluster.put(PODS.path, name, "kube-system", spec=manifest["spec"], status=manifest["status"])
    entries, _ = list_objects(connection, stores.pods)
    assert not entries, "a plain pod of a list is kept as what it takes alone"
    assert stores.pods.replace(entries)
    assert load(stores) == (2000, 0, 2)


POD = st.tuples(
    st.sampled_from(("a", "b", "c")), st.sampled_from(("", "n", "m")), st.sampled_from(("", "1", "2")), st.booleans()
)


@given(st.lists(st.tuples(st.sampled_from(("put", "drop")), POD), max_size=30))
def test_incremental_loads_equal_those_of_the_last_state(history: list[tuple[str, Any]]) -> None:
    """Names may appear again on other nodes after a deletion, as those of StatefulSets do."""
    stores = Stores()
    live: dict[str, dict[str, Any]] = {}
    for what, (name, node, cpu, shares) in history:
        if name in live and (what == "drop" or live[name]["spec"]["nodeName"] not in ("", node)):
            drop(stores, live.pop(name))
        if what == "put":
            live[name] = a_plain_manifest(name, node, cpu=cpu)
            if shares:
                live[name]["metadata"]["annotations"] = {"gpu-fraction": "0.5"}
            put(stores, live[name])
    fresh = Stores()
    for manifest in live.values():
        put(fresh, manifest)
    assert stores.pods.loads() == fresh.pods.loads()
    assert {pod.name for pod in stores.pods.values()} == {pod.name for pod in fresh.pods.values()}


def test_without_permission_for_daemon_sets_a_warning_is_given(
    cluster: FakeApiserver, observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plimsoll.observe.cluster.kind_watch.FORBIDDEN", 0.05)
    cluster.put(DAEMON_SETS.path, "agent", "kube-system", spec={"template": {"spec": {"containers": []}}})
    cluster.refusals[DAEMON_SETS.path] = [refusal(403, "Forbidden")] * 3
    start(observer)
    await_condition(lambda: [each.name for each in observer.snapshot().daemon_sets] == ["agent"], 120)
    assert not any("DaemonSet" in each for each in observer.snapshot().warnings)


def test_the_warning_says_what_is_not_counted_and_what_to_change(cluster: FakeApiserver, observer: Observer) -> None:
    cluster.refusals[DAEMON_SETS.path] = [refusal(403, "Forbidden")] * 9
    start(observer)
    (warning,) = [each for each in observer.snapshot().warnings if "DaemonSet" in each]
    assert "not counted" in warning
    assert "foundation stack" in warning
    assert len(cluster.seen(DAEMON_SETS.path, watch=False)) == 1, "nobody asks again and again"


def test_reading_once_without_that_permission_gives_the_same_warning(
    cluster: FakeApiserver, connection: Connection
) -> None:
    cluster.refusals[DAEMON_SETS.path] = [refusal(403, "Forbidden")]
    assert any("what DaemonSets take" in each for each in read_cluster(connection).warnings)
    cluster.refusals[NODES.path] = [refusal(403, "Forbidden")]
    with pytest.raises(RequestError):
        read_cluster(connection)


@pytest.mark.parametrize("resource", ["nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared"])
def test_pods_that_request_undeclared_parts_of_gpus_are_kept(resource: str) -> None:
    """The plan refuses them by name."""
    stores = Stores()
    container = {"name": "main", "resources": {"limits": {resource: "1"}}}
    put(stores, {"metadata": {"name": "slice", "namespace": "team"}, "spec": {"containers": [container]}})
    [pod] = stores.snapshot().pods
    assert pod.devices(resource) == 1


def test_pods_that_claim_devices_are_kept() -> None:
    """Their node is in use, though they request nothing that the node announces."""
    stores = Stores()
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    spec = {"containers": [{"name": "main"}], "resourceClaims": claims, "nodeName": "n1"}
    put(stores, {"metadata": {"name": "claiming", "namespace": "team"}, "spec": spec})
    [pod] = stores.snapshot().pods
    assert [each.template for each in pod.resource_claims] == ["one-gpu"]
