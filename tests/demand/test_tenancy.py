"""A namespace gets the GPUs that it may have, whichever way it asks for them, and what it may not have costs others
nothing."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.labels import GPU_RESOURCE, NODEPOOL
from plimsoll.model import Plan
from plimsoll.model.api import GATE_REMOVED_REASON, Environment
from plimsoll.model.cluster import Pod, ResourceQuota
from plimsoll.plan import plan, validate
from plimsoll.plan.classes import Refusal, RefusalReason
from plimsoll.plan.demand import Demand, DemandPlanner
from plimsoll.plan.limits import NamespaceBudget
from plimsoll.plan.view import ClusterView
from tests.builders import (
    a_claim,
    a_gpu_node,
    a_node_pool,
    a_queue,
    a_snapshot,
    a_waiting_pod,
    a_workspace,
    an_environment,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
L4 = "g6.xlarge"
POOL = a_node_pool("pool", (L4,))
TENSOR_FUSION = "tensor-fusion-scheduler"


def an_access(namespace: str = "team", **allowed: Any) -> Environment:
    return an_environment(access=[{"namespaces": [namespace], **allowed}])


def a_quota(gpus: str = "0", namespace: str = "team", **spec: Any) -> ResourceQuota:
    metadata = {"name": "gpus", "namespace": namespace}
    return ResourceQuota.read({"metadata": metadata, "spec": {"hard": {f"requests.{GPU_RESOURCE}": gpus}, **spec}})


def demands(*objects: Any, environment: Environment | None = None) -> Sequence[Demand]:
    snapshot = a_snapshot(*objects, environment=environment)
    limits = NamespaceBudget(ClusterView(snapshot))
    return DemandPlanner().plan(snapshot, namespaces=limits, now=NOW).demands


def refusals(*objects: Any, environment: Environment | None = None) -> dict[str, Refusal]:
    found = demands(*objects, environment=environment)
    return {uid: why for demand in found for uid, why in {**demand.refused, **demand.kept_out}.items()}


def served(*objects: Any, environment: Environment | None = None) -> set[str]:
    """UIDs of the pods that have a place or get one."""
    placed: set[str] = set()
    for demand in demands(*objects, environment=environment):
        placed |= demand.on_new.keys() | {uid for uids in demand.on_nodes.values() for uid in uids}
    return placed


def shares(count: int, fraction: str = "0.5", **more: Any) -> list[Pod]:
    name = more.pop("name", "share")
    return [a_waiting_pod(f"{name}-{n}", gpu_fraction=fraction, **more) for n in range(count)]


@pytest.mark.parametrize(
    ("scheduler", "asked", "gets"),
    [
        ("default-scheduler", {"gpu_fraction": "0.5"}, False),
        ("default-scheduler", {"gpu_memory": "2000"}, False),
        ("default-scheduler", {"tensor-fusion.ai/vram-request": "2Gi"}, False),
        (TENSOR_FUSION, {"tensor-fusion.ai/vram-request": "2Gi"}, True),
        ("kai-scheduler", {"gpu_fraction": "0.5"}, True),
        ("plimsoll", {"gpu_fraction": "0.5"}, True),
    ],
)
def test_a_share_gets_capacity_only_of_a_scheduler_that_serves_shares(
    scheduler: str, asked: dict[str, Any], gets: bool
) -> None:
    environment = an_environment(
        demand={"schedulers": ["default-scheduler", TENSOR_FUSION, "kai-scheduler", "plimsoll"]}
    )
    pods = (a_waiting_pod("share", scheduler=scheduler, **asked), a_waiting_pod("other", gpu_fraction="0.5"))
    found = refusals(*pods, POOL, environment=environment)
    assert served(*pods, POOL, environment=environment) == ({"uid-share", "uid-other"} if gets else {"uid-other"})
    if not gets:
        assert found.keys() == {"uid-share"}
        assert found["uid-share"].reason is RefusalReason.NOT_ALLOWED
        assert f"scheduler {scheduler} serves no shares" in str(found["uid-share"])


@pytest.mark.parametrize(("gpus", "gets"), [(0, 0), (1, 2), (2, 3)])
def test_shares_take_of_the_gpus_that_their_namespace_may_have(gpus: int, gets: int) -> None:
    environment = an_access(gpus=gpus)
    found = refusals(*shares(3), POOL, environment=environment)
    assert len(served(*shares(3), POOL, environment=environment)) == gets
    assert len(found) == 3 - gets
    for why in found.values():
        assert why.reason is RefusalReason.NOT_ALLOWED
        assert f"access.gpus of the Environment lets namespace 'team' have {gpus} GPUs" in str(why)
        assert "team" not in why.without_names


@pytest.mark.parametrize(("gpus", "gets"), [("0", 0), ("1", 2), ("2", 3), ("many", 0)])
def test_a_resource_quota_of_the_gpu_resource_bounds_shares(gpus: str, gets: int) -> None:
    assert len(served(*shares(3), POOL, a_quota(gpus))) == gets
    assert all(
        "ResourceQuota gpus of namespace 'team'" in str(why)
        for why in refusals(*shares(3), POOL, a_quota(gpus)).values()
    )


@pytest.mark.parametrize(
    "quota",
    [
        a_quota("0", namespace="other"),
        a_quota("0", scopes=["BestEffort"]),
        a_quota("0", scopeSelector={"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}),
        ResourceQuota.read({"metadata": {"name": "q", "namespace": "team"}, "spec": {"hard": {"pods": "0"}}}),
    ],
    ids=["other namespace", "scope", "scope selector", "pods"],
)
def test_other_quotas_do_not(quota: ResourceQuota) -> None:
    assert len(served(*shares(3), POOL, quota)) == 3


@pytest.mark.parametrize(
    ("spec", "scopes"),
    [
        ({"scopes": ["BestEffort"]}, "BestEffort"),
        ({"scopes": ["Terminating"]}, "Terminating"),
        (
            {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}},
            "PriorityClass",
        ),
        (
            {
                "scopes": ["NotTerminating"],
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
                },
            },
            "NotTerminating, PriorityClass",
        ),
        ({"scopeSelector": {"matchExpressions": "none"}}, "scopeSelector"),
        ({}, ""),
    ],
    ids=lambda each: each or "every pod" if isinstance(each, str) else "",
)
def test_a_quota_that_is_not_counted_is_named(spec: dict[str, Any], scopes: str) -> None:
    quota = a_quota("0", **spec)
    warnings = plan(a_snapshot(*shares(1), POOL, quota), (), NOW).warnings
    named = [each for each in warnings if "team/gpus" in each]
    assert [scopes in each and "with scopes" in each for each in named] == ([True] if scopes else [])
    assert len(served(*shares(1), POOL, quota)) == (1 if scopes else 0)


def test_a_quota_of_something_else_is_not_named() -> None:
    other = ResourceQuota.read(
        {
            "metadata": {"name": "q", "namespace": "team"},
            "spec": {"hard": {"pods": "0", "requests.other.example/fpga": "1"}, "scopes": ["BestEffort"]},
        }
    )
    assert not any("ResourceQuota" in each for each in plan(a_snapshot(*shares(1), POOL, other), (), NOW).warnings)


def test_whole_gpus_shares_and_nodes_of_workspaces_count_together() -> None:
    environment = an_access(gpus=2)
    node = a_gpu_node("n", gpus=8)
    bound = a_waiting_pod("bound", gpu_fraction="0.5", node="n", phase="Running")
    whole = a_waiting_pod("whole", gpus=1, node="n", phase="Running")
    assert len(served(*shares(4), bound, POOL, node, environment=environment)) == 3
    assert len(served(*shares(4), bound, whole, POOL, node, environment=environment)) == 1
    workspace = a_workspace(namespace="team", instance_type=L4)
    claim = a_claim("claim", workspace, instance_type=L4)
    assert len(served(*shares(4), bound, workspace, claim, POOL, node, environment=environment)) == 1


def test_shares_count_for_workspaces_too() -> None:
    workspace = a_workspace(namespace="default", instance_type=L4, replicas=2, selector={})
    environment = an_environment(nap=True, access=[{"namespaces": ["default"], "gpus": 2}])
    pool, node = a_node_pool("pool", (L4,)), a_gpu_node("n", gpus=1)
    bound = a_waiting_pod("bound", gpu_fraction="0.5", namespace="default", node="n", phase="Running")
    [free] = validate(a_snapshot(workspace, pool, node, environment=environment))
    assert free.accepted, free.message
    [verdict] = validate(a_snapshot(workspace, pool, node, bound, environment=environment))
    assert not verdict.accepted
    assert "0.5 are in use, and 2 more are requested" in verdict.message
    quota = a_quota("1", namespace="default")
    [verdict] = validate(a_snapshot(workspace, pool, node, quota, environment=an_environment(nap=True)))
    assert "ResourceQuota gpus of namespace 'default' allows 1" in verdict.message


def test_pods_without_their_gate_count_for_workspaces_too() -> None:
    """A tenant closes their place until the Workspace has its nodes."""
    workspace = a_workspace(namespace="default", instance_type=L4, replicas=2, selector={})
    environment = an_environment(nap=True, access=[{"namespaces": ["default"], "gpus": 2}])
    let = a_waiting_pod("let", gpu_fraction="0.5", namespace="default")
    for annotations, accepted in ((let.annotations, True), (let.annotations | {GATE_REMOVED_REASON: "free"}, False)):
        pod = let.model_copy(update={"annotations": annotations})
        [verdict] = validate(a_snapshot(workspace, a_node_pool("pool", (L4,)), pod, environment=environment))
        assert verdict.accepted is accepted, verdict.message


def test_a_label_does_not_hide_what_a_pod_uses() -> None:
    """Anyone may write the label that pods of Workspaces have."""
    environment = an_access(gpus=1)
    labelled = {"plimsoll.dev/workspace": "none", "plimsoll.dev/workspace-namespace": "team"}
    node = a_gpu_node("n", gpus=8)
    bound = a_waiting_pod("bound", gpus=1, node="n", phase="Running", more_labels=labelled)
    assert not served(*shares(1), bound, POOL, node, environment=environment)


@pytest.mark.parametrize("namespace", ["team", "*"])
def test_each_namespace_of_an_entry_has_its_own_gpus(namespace: str) -> None:
    pods = (*shares(3), *shares(3, namespace="other", name="other"))
    found = served(*pods, POOL, environment=an_access(namespace, gpus=1))
    assert len(found) == (4 if namespace == "*" else 2), "a namespace without an entry gets nothing"
    if namespace == "team":
        why = refusals(*pods, POOL, environment=an_access(namespace, gpus=1))["uid-other-0"]
        assert "no entry in access of the Environment names it" in str(why)


def test_shares_get_nodes_of_allowed_node_pools_and_instance_types_only() -> None:
    small, large = a_node_pool("small", (L4,)), a_node_pool("large", ("g5.xlarge",))
    pod = a_waiting_pod("share", gpu_fraction="0.5")
    for allowed, types in (
        ({}, {L4, "g5.xlarge"}),
        ({"nodePools": ["large"]}, {"g5.xlarge"}),
        ({"instanceTypes": [L4]}, {L4}),
        ({"instanceTypes": [L4], "nodePools": ["large"]}, set[str]()),
        ({"nodePools": []}, set[str]()),
    ):
        snapshot = a_snapshot(pod, small, large, environment=an_access(**allowed))
        found = DemandPlanner().plan(snapshot, now=NOW)
        assert {each.instance_type for each in found.nodes} <= types, allowed
        assert bool(found.nodes) == bool(types)
        if not types:
            [why] = [each for demand in found.demands for each in demand.refused.values()]
            assert why.reason is RefusalReason.NOT_ALLOWED
            assert "access of the Environment allows namespace 'team'" in str(why)
            assert "'team'" not in why.without_names


def test_free_gpus_of_other_node_pools_are_not_for_the_namespace_and_those_of_none_are() -> None:
    pod = a_waiting_pod("share", gpu_fraction="0.5")
    theirs, nobodys = a_gpu_node("theirs", more_labels={NODEPOOL: "theirs"}), a_gpu_node("nobodys")
    environment = an_access(nodePools=["pool"])
    assert not served(pod, theirs, environment=environment)
    assert served(pod, nobodys, environment=environment)


def test_a_pod_uses_an_allowed_queue() -> None:
    queues = (a_queue("root", parent=""), a_queue("a"), a_queue("b"))
    pod = a_waiting_pod("share", gpu_fraction="0.5", queue="b")
    assert served(pod, POOL, *queues, environment=an_access(queues=["b"]))
    [why] = refusals(pod, POOL, *queues, environment=an_access(queues=["a"])).values()
    assert "namespace 'team' may not use queue 'b': allowed are a" in str(why)


def test_where_queues_are_declared_a_pod_without_one_gets_no_capacity_unless_a_setting_says_so() -> None:
    queues = (a_queue("root", parent=""), a_queue("default-queue"))
    schedulers = ["kai-scheduler", "plimsoll", "default-scheduler"]
    pods = (
        a_waiting_pod("share", gpu_fraction="0.5", scheduler="plimsoll"),
        a_waiting_pod("whole", gpus=1, scheduler="default-scheduler"),
        a_waiting_pod("queued", gpu_fraction="0.5"),
    )
    demand: dict[str, Any] = {"schedulers": schedulers}
    found = refusals(*pods, POOL, *queues, environment=an_environment(demand=demand))
    assert found.keys() == {"uid-share", "uid-whole"}
    assert all("it has no queue" in str(why) and "demand.withoutQueue" in str(why) for why in found.values())
    assert not refusals(*pods, POOL, environment=an_environment(demand=demand)), "no Queue is declared"
    demand["withoutQueue"] = "allow"
    assert not refusals(*pods, POOL, *queues, environment=an_environment(demand=demand))


def gates(planned: Plan) -> list[str]:
    return [each.key.name for each in planned.gate_removals]


def a_whole_gpu(name: str, scheduler: str = "kai-scheduler", **limits: str) -> Pod:
    """A pod with the capacity gate."""
    container = {"name": "c", "resources": {"limits": limits or {GPU_RESOURCE: "1"}}}
    gate = {"name": "plimsoll.dev/capacity"}
    spec = {"schedulerName": scheduler, "schedulingGates": [gate], "containers": [container]}
    return Pod.read({"metadata": {"name": name, "namespace": "team", "uid": name}, "spec": spec})


@pytest.mark.parametrize(("gpus", "released"), [(0, 0), (1, 1), (3, 3)])
def test_the_gate_holds_whole_gpus_that_the_namespace_may_not_have(gpus: int, released: int) -> None:
    pods = [a_whole_gpu(f"whole-{n}") for n in range(3)]
    snapshot = a_snapshot(*pods, POOL, environment=an_access(gpus=gpus))
    assert len(gates(plan(snapshot, (), NOW))) == released


@pytest.mark.parametrize(
    ("access", "released"),
    [
        ([], True),
        ([{"namespaces": ["team"]}], True),
        ([{"namespaces": ["team"], "gpus": 9}], False),
        ([{"namespaces": ["another"]}], False),
    ],
)
def test_whole_gpus_of_a_scheduler_that_is_not_counted_pass_the_gate_only_without_a_limit(
    access: list[dict[str, Any]], released: bool
) -> None:
    whole = [a_whole_gpu("nvidia", "volcano"), a_whole_gpu("vendor", "volcano", **{"amd.com/gpu": "1"})]
    snapshot = a_snapshot(
        *whole, a_whole_gpu("none", "volcano", cpu="1"), POOL, environment=an_environment(access=access)
    )
    assert gates(plan(snapshot, (), NOW)) == ["none", *(["nvidia", "vendor"] if released else [])]


def test_declared_parts_of_gpus_count_as_their_part() -> None:
    shared = [{"nodePool": "pool", "resource": "nvidia.com/gpu.shared", "perGpu": 4}]
    environment = an_environment(
        access=[{"namespaces": ["team"], "gpus": 1}], demand={"provisioner": "trigger-pod", "sharedDevices": shared}
    )
    pods = [
        Pod.read(
            {
                "metadata": {"name": f"slice-{n}", "namespace": "team", "uid": f"slice-{n}"},
                "spec": {
                    "schedulerName": "kai-scheduler",
                    "nodeSelector": {NODEPOOL: "pool"},
                    "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu.shared": "1"}}}],
                },
                "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
            }
        )
        for n in range(6)
    ]
    pool = a_node_pool("pool", (L4,), requirements=[{"key": "plimsoll.dev/request", "operator": "Exists"}])
    assert len(served(*pods, pool, environment=environment)) == 4


def test_what_a_namespace_may_not_have_takes_nothing_of_a_queue() -> None:
    queues = (a_queue("root", parent=""), a_queue("common", limit=1))
    hostile = shares(20, queue="common", priority=1000, name="hostile", namespace="hostile")
    own = shares(2, queue="common", name="own")
    environment = an_environment(access=[{"namespaces": ["hostile"], "gpus": 0}, {"namespaces": ["*"]}])
    assert served(*hostile, *own, POOL, *queues, environment=environment) == {"uid-own-0", "uid-own-1"}


def test_what_the_queue_refuses_takes_nothing_of_the_namespace() -> None:
    queues = (a_queue("root", parent=""), a_queue("full", limit=0.5), a_queue("open"))
    first = shares(4, queue="full", priority=1000, name="first")
    second = shares(2, queue="open", name="second")
    environment = an_access(gpus=1)
    assert len(served(*first, *second, POOL, *queues, environment=environment)) == 2


def test_pods_that_fit_no_node_take_nothing_of_the_namespace() -> None:
    unfit = shares(4, priority=1000, name="unfit", selector={"disk": "none"})
    assert len(served(*unfit, *shares(2), POOL, environment=an_access(gpus=1))) == 2


PODS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]), st.sampled_from(["0.25", "0.3", "0.5", "0.9"]), st.sampled_from([1, 60, 200])
    ),
    max_size=12,
)


@given(pods=PODS, a=st.integers(0, 3), b=st.none() | st.integers(0, 3))
def test_a_namespace_gets_pods_in_order_while_it_may(pods: list[tuple[str, str, int]], a: int, b: int | None) -> None:
    """Compared with the exact sums, one pod after the other."""
    access: list[dict[str, Any]] = [{"namespaces": ["a"], "gpus": a}, {"namespaces": ["b"]}]
    if b is not None:
        access[1]["gpus"] = b
    waiting = [
        a_waiting_pod(f"{number:02}", namespace=namespace, gpu_fraction=fraction, priority=priority)
        for number, (namespace, fraction, priority) in enumerate(pods)
    ]
    used, expected = defaultdict[str, Fraction](Fraction), set[str]()
    most = {"a": a, "b": len(pods) if b is None else b}
    for pod in sorted(waiting, key=lambda pod: (-pod.priority, pod.uid)):
        asked = Fraction(pod.annotations["gpu-fraction"])
        if used[pod.namespace] + asked <= most[pod.namespace]:
            used[pod.namespace] += asked
            expected.add(pod.uid)
    assert served(*waiting, POOL, environment=an_environment(access=access)) == expected


def test_the_limit_of_its_node_pool_bounds_the_nodes_of_small_shares() -> None:
    """100 shares of a hundredth of a GPU with three CPU each are one GPU on as many nodes."""
    own = a_node_pool("own", (L4,), limits={GPU_RESOURCE: 2})
    pods = shares(100, "0.01", cpu="3")
    for pools, most in ((None, None), (["own"], 2)):
        environment = an_access(gpus=1, nodePools=pools)
        snapshot = a_snapshot(*pods, POOL, own, environment=environment)
        nodes = DemandPlanner().plan(snapshot, namespaces=NamespaceBudget(ClusterView(snapshot)), now=NOW).nodes
        assert len(nodes) == most if most is not None else len(nodes) > 50
