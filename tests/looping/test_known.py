"""What is known of earlier rounds changes no result: each round is equal to one of a controller that just started."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.cluster.nodes import IndexedNodes
from plimsoll.cluster.pods import IndexedPods
from plimsoll.labels import CAPACITY_FINALIZER, NODEPOOL
from plimsoll.model import InvalidObject, Plan, Reason, Refusal, Snapshot
from plimsoll.model.api import Workspace, WorkspaceRef, WorkspaceStatus
from plimsoll.model.cluster import Node
from plimsoll.model.karpenter import ClaimEvent, NodeClaim
from plimsoll.model.meta import Placement
from plimsoll.plan import Known, plan, validate
from plimsoll.plan.demand import DemandPlanner
from plimsoll.plan.view import ClusterView
from plimsoll.plan.workspaces import AppliedClaims, ByoNodes, ProvisionedNodes, WorkspaceNodes
from plimsoll.report import Finalizing, WorkspaceReport, finalizing, report_on, status_of
from tests.builders import (
    A100,
    NC24,
    a_claim,
    a_node,
    a_node_pool,
    a_pod,
    a_snapshot,
    a_waiting_pod,
    a_workload,
    a_workspace,
    an_autoscaler,
    an_environment,
)
from tests.planning.cluster import after, launched, workload_key

START = datetime(2026, 1, 1, tzinfo=UTC)
NC48 = "Standard_NC48ads_A100_v4"
NAMES = ("a", "b", "c", "d")
NODES = tuple(f"node-{number}" for number in range(6))
OF_HUB = "acme/law-8b"
PRESETS = (None, None, "phi-4-mini-instruct", "llama-3.3-70b-instruct", OF_HUB)

Draw = Callable[[st.SearchStrategy[Any]], Any]


def a_setting(draw: Draw, *, nap: bool) -> Any:
    limits = {
        "gpus": draw(st.none() | st.integers(0, 12)),
        "nodes": draw(st.none() | st.integers(0, 8)),
        "workspaceNodes": draw(st.none() | st.integers(1, 3)),
    }
    spec: dict[str, Any] = {"limits": {key: value for key, value in limits.items() if value is not None}}
    if nap:
        spec["provisioner"] = draw(st.sampled_from(["nodeclaim", "nodeclaim", "static-nodepool"]))
    if draw(st.booleans()):
        spec["access"] = [{"namespaces": ["*"], "gpus": draw(st.integers(0, 8))}]
    demand = {"provisioner": draw(st.sampled_from(["none", "trigger-pod"]))}
    return an_environment(nap, demand=demand, **spec)


def a_drawn_workspace(draw: Draw, name: str, *, nap: bool) -> Workspace:
    drawn = a_workspace(
        name,
        uid=draw(st.sampled_from([f"uid-{name}", f"uid-{name}", "other"])),
        created=f"2026-01-01T00:0{draw(st.integers(0, 3))}:00Z",
        deleting=draw(st.integers(0, 9)) == 0,
        selector=draw(st.sampled_from([{}, {"pool": "a"}, {"pool": "a"}, {"pool": "b"}])),
        instance_type=draw(st.sampled_from([NC24, NC24, NC48, NC24.lower()])) if nap else None,
        replicas=draw(st.integers(0, 3)),
        preset=draw(st.sampled_from(PRESETS)),
    )
    finalizers = draw(st.sampled_from([(), (CAPACITY_FINALIZER,)]))
    return drawn.model_copy(update={"finalizers": finalizers})


def a_drawn_claim(draw: Draw, name: str, workspaces: tuple[Workspace, ...]) -> NodeClaim:
    own = a_claim(
        name,
        draw(st.sampled_from(workspaces)) if workspaces else ("default", "a"),
        ready=draw(st.booleans()),
        deleting=draw(st.integers(0, 5)) == 0,
        created=f"2026-01-01T00:0{draw(st.integers(0, 3))}:00Z",
        node=draw(st.sampled_from(["", *NODES])),
    )
    pooled = draw(st.integers(0, 4)) == 0
    return own.model_copy(update={"labels": own.labels | {NODEPOOL: "pool"}}) if pooled else own


def a_drawn_node(draw: Draw, name: str) -> Any:
    return a_node(
        name,
        draw(st.sampled_from(["a", "a", "b"])),
        product=draw(st.sampled_from([None, *([A100] * 6)])),
        ready=draw(st.sampled_from([*([True] * 5), False, None])),
        cordoned=draw(st.integers(0, 7)) == 0,
        allocatable=draw(st.sampled_from([None, 0, 1, 1, 1, 1])),
        instance_type=draw(st.sampled_from([NC24, NC48])),
    )


def a_drawn_pod(draw: Draw, name: str, workspaces: tuple[Workspace, ...]) -> Any:
    if draw(st.integers(0, 2)) == 0:
        return a_waiting_pod(name, gpu_fraction=draw(st.sampled_from(["0.3", "0.6"])))
    owner = draw(st.none() | st.sampled_from(workspaces)) if workspaces else None
    phase = draw(st.sampled_from(["Running", "Running", "Succeeded"]))
    return a_pod(name, owner, draw(st.sampled_from(["", *NODES])), devices=draw(st.integers(0, 1)), phase=phase)


def put(objects: tuple[Any, ...], new: Any) -> tuple[Any, ...]:
    """With the object, in the place of the one of its name; the others are the same objects."""
    if any(each.key == new.key for each in objects):
        return tuple(new if each.key == new.key else each for each in objects)
    return (*objects, new)


def without(objects: tuple[Any, ...], draw: Draw) -> tuple[Any, ...]:
    gone = draw(st.sampled_from(objects)) if objects else None
    return tuple(each for each in objects if each is not gone)


def with_statuses(snapshot: Snapshot, made: Plan, now: datetime) -> Snapshot:
    """After the wanted statuses were written."""
    nodes = WorkspaceNodes(snapshot, made.verdicts, AppliedClaims(made))
    verdicts = {(each.workspace.namespace, each.workspace.name): each for each in made.verdicts}

    def written(workspace: Workspace) -> Workspace:
        status = WorkspaceStatus.model_validate(status_of(workspace, verdicts[workspace.key], nodes, now))
        return workspace.model_copy(update={"status": status})

    return snapshot.model_copy(update={"workspaces": tuple(map(written, snapshot.workspaces))})


def applied(snapshot: Snapshot, made: Plan) -> Snapshot:
    """After the Plan, except for trigger pods, and for names that objects of an earlier Workspace still have."""
    there = {workload_key(each) for each in snapshot.workloads}
    creations = tuple(each for each in made.creations if each.key.kind != "Pod" and each.key not in there)
    return after(snapshot, made.model_copy(update={"creations": creations}))


def scaled(draw: Draw, snapshot: Snapshot) -> dict[str, Any]:
    """An autoscaler of one of the workloads sets its replicas."""
    if not snapshot.workloads:
        return {}
    chosen, replicas = draw(st.sampled_from(snapshot.workloads)), draw(st.integers(0, 3))
    declared = {
        "apiVersion": chosen.api_version,
        "kind": chosen.kind,
        "metadata": {"name": chosen.name, "namespace": chosen.namespace, "labels": chosen.labels},
        "spec": {"replicas": replicas},
    }
    return {
        "autoscalers": (an_autoscaler(declared),),
        "workloads": tuple(
            a_workload(declared, scaled_to=replicas) if each is chosen else each for each in snapshot.workloads
        ),
    }


def an_event(draw: Draw, snapshot: Snapshot) -> dict[str, Any]:
    claim = draw(st.sampled_from(["claim-0", "claim-1"]))
    message = {"involvedObject": {"name": claim}, "metadata": {"name": "e", "namespace": "default"}, "message": "none"}
    return {"claim_events": (ClaimEvent.read(message),)}


def change(draw: Draw, snapshot: Snapshot, *, nap: bool) -> Snapshot:
    """The snapshot after one change. Objects that do not change are the same, as in the observer's stores."""
    seen = snapshot
    match draw(st.integers(0, 14)):
        case 0 | 1:
            new = a_drawn_workspace(draw, draw(st.sampled_from(NAMES)), nap=nap)
            changed: dict[str, Any] = {"workspaces": put(seen.workspaces, new)}
        case 2:
            changed = {"workspaces": without(seen.workspaces, draw)}
        case 3 | 4:
            claim = a_drawn_claim(draw, f"claim-{draw(st.integers(0, 4))}", seen.workspaces)
            changed = {"node_claims": put(seen.node_claims, claim)}
        case 5:
            changed = {"node_claims": without(seen.node_claims, draw)}
        case 6 | 7:
            changed = {"nodes": put(seen.nodes, a_drawn_node(draw, draw(st.sampled_from(NODES))))}
        case 8 | 9:
            pod = a_drawn_pod(draw, f"pod-{draw(st.integers(0, 5))}", seen.workspaces)
            changed = {"pods": put(seen.pods, pod)}
        case 10:
            changed = {"environment": a_setting(draw, nap=draw(st.integers(0, 3)) > 0 if nap else False)}
        case 11:
            changed = scaled(draw, seen)
        case 12:
            changed = an_event(draw, seen)
        case 13:
            changed = {"hub_refusals": {OF_HUB: draw(st.sampled_from(["not found", "no config.json"]))}}
            asked = draw(st.sampled_from([*(f"uid-{name}" for name in NAMES), ""]))
            changed["refused_workloads"] = {asked: Refusal(Reason.INVALID_SPEC, "no such field")} if asked else {}
        case _:
            missing = draw(st.sampled_from([(), ("LeaderWorkerSet",), ("Service",)]))
            broken = InvalidObject(ref=WorkspaceRef(namespace="default", name="broken", uid="b"), message="no")
            changed = {"missing_kinds": missing, "invalid_workspaces": draw(st.sampled_from([(), (broken,)]))}
    return seen.model_copy(update=changed)


Outcome = tuple[Plan, list[WorkspaceReport], list[Finalizing]]


def a_round(view: ClusterView, now: datetime, planner: DemandPlanner) -> Outcome:
    made = plan(view, validate(view), now, planner)
    nodes = WorkspaceNodes(view, made.verdicts, AppliedClaims(made))
    statuses = {each.key: each.status for each in view.observed.workspaces}
    verdicts = {(each.workspace.namespace, each.workspace.name): each for each in made.verdicts}
    previous = {key: statuses.get(key, WorkspaceStatus()) for key in verdicts}
    reports = list(report_on(verdicts, previous, view, nodes, now).values())
    return made, reports, list(finalizing(view, made, (), now))


@pytest.fixture(scope="module")
def compared() -> Iterator[Counter[str]]:
    """Counts what the rounds were about, so that the examples stay worth it."""
    counted: Counter[str] = Counter()
    yield counted
    for what in ("operations", "nothing to do", "awaited", "refused"):
        assert counted[what] >= counted["rounds"] // 20, counted


@settings(max_examples=120)
@given(data=st.data())
def test_each_round_is_equal_to_one_from_nothing(data: st.DataObject, compared: Counter[str]) -> None:
    draw: Draw = data.draw
    nap = draw(st.booleans())
    known, planner, now = Known(), DemandPlanner(), START
    snapshot = a_snapshot(
        *(a_drawn_workspace(draw, name, nap=nap) for name in NAMES[: draw(st.integers(1, 4))]),
        *(a_drawn_node(draw, name) for name in NODES[: draw(st.integers(1, 6))]),
        a_node_pool("pool", [NC24], limits={"nodes": 6}),
        environment=a_setting(draw, nap=nap),
    )
    nodes, pods = IndexedNodes(), IndexedPods.of(())
    for _ in range(draw(st.integers(3, 10))):
        # As in the observer's stores, what does not change is the same object.
        nodes = nodes if nodes == snapshot.nodes else IndexedNodes(snapshot.nodes)
        pods = pods if pods == snapshot.pods else IndexedPods.of(snapshot.pods, pods)
        snapshot = snapshot.model_copy(update={"nodes": nodes, "pods": pods})
        known.begin()
        found = a_round(ClusterView(snapshot, known), now, planner)
        assert found == a_round(ClusterView(snapshot), now, DemandPlanner())
        made, reports, _ = found
        compared["rounds"] += 1
        compared["operations"] += not made.empty
        compared["nothing to do"] += made.empty and all(each.lasts() for each in reports)
        compared["awaited"] += any(not each.settled for each in reports)
        compared["refused"] += bool(made.refusals)
        match draw(st.integers(0, 5)):
            case 0:
                snapshot = applied(snapshot, made)
            case 1:
                snapshot = launched(applied(snapshot, made))
            case 2:
                snapshot = with_statuses(snapshot, made, now)
            case _:
                for _ in range(draw(st.integers(1, 2))):
                    snapshot = change(draw, snapshot, nap=nap)
        now += timedelta(seconds=draw(st.sampled_from([0, 1, 40, 400, 2000])))


def test_a_result_is_forgotten_when_a_round_does_not_ask_for_it() -> None:
    known, computed = Known(), list[str]()

    def ask(*names: str) -> None:
        known.begin()
        for name in names:
            known.result("test", (1,), partial(computed.append, name), subject=name)

    ask("a", "b")
    ask("a", "b")
    assert computed == ["a", "b"]
    ask("b")
    ask("a", "b")
    assert computed == ["a", "b", "a"]


def test_a_result_is_of_its_arguments() -> None:
    known = Known()
    assert known.result("test", ([1],), lambda: "one") == "one"
    assert known.result("test", ([1],), lambda: "never") == "one"
    assert known.result("test", ([2],), lambda: "two") == "two"
    assert known.result("test", ([2],), lambda: "other", subject="another") == "other"


def test_only_subjects_that_read_something_else_are_computed_again() -> None:
    known, computed, read = Known(), list[str](), list[str]()

    def lengths(*names: str, lasts: bool = True) -> Mapping[str, int]:
        known.begin()
        computed.clear()
        read.clear()

        def reads(name: str) -> tuple[object, ...]:
            read.append(name)
            return (name,)

        def compute(name: str) -> int:
            computed.append(name)
            return len(name)

        return known.each("test", names, names, reads, compute, lasts=lambda of: lasts or of > 1)

    first = lengths("a", "bb")
    assert first == {"a": 1, "bb": 2}
    assert lengths("a", "bb") is first
    assert not read
    assert lengths("a", "bb", "ccc") == {"a": 1, "bb": 2, "ccc": 3}
    assert computed == ["ccc"]
    assert list(lengths("bb", "a")) == ["bb", "a"], "in the order of the subjects"
    assert computed == []
    assert lengths("a", "dd", lasts=False)
    assert computed == ["dd"]
    assert lengths("a", "dd", lasts=False)
    assert computed == ["a"], "what does not last is computed again"


def rounds(
    monkeypatch: pytest.MonkeyPatch, mode: type[ByoNodes] | type[ProvisionedNodes], snapshot: Snapshot
) -> Callable[..., set[str]]:
    """A round with the nodes that are given: the names of the Workspaces that it evaluates anew."""
    evaluated: list[str] = []
    plain: Callable[..., Any] = mode.evaluate

    def counted(nodes: Any, workspace: Workspace, volumes: Placement) -> Any:
        evaluated.append(workspace.name)
        return plain(nodes, workspace, volumes)

    monkeypatch.setattr(mode, "evaluate", counted)
    known = Known()

    def round_with(*nodes: Node) -> set[str]:
        evaluated.clear()
        known.begin()
        changed = snapshot.model_copy(update={"nodes": IndexedNodes(nodes)})
        assert validate(ClusterView(changed, known)) == validate(ClusterView(changed))
        return {name for name in evaluated if evaluated.count(name) > 1}

    return round_with


def test_a_changed_node_concerns_only_workspaces_that_it_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    """And those without a selector, which read all nodes."""
    own = [a_workspace(name, selector={"pool": name} if name != "all" else {}) for name in ("a", "b", "none", "all")]
    snapshot = a_snapshot(*own, a_node("x", "a"), a_node("y", "b"))
    round_with = rounds(monkeypatch, ByoNodes, snapshot)

    first, second = snapshot.nodes
    assert round_with(first, second) == {"a", "b", "none", "all"}
    assert round_with(first, second.model_copy(update={"unschedulable": True})) == {"b", "all"}
    assert round_with(first) == {"b", "none", "all"}, "its refusal names the number of nodes"


def test_with_auto_provisioning_a_changed_node_concerns_only_workspaces_of_its_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And those of no known type, whose refusals name others."""
    own = [a_workspace(name, instance_type=of) for name, of in (("a", NC24), ("b", NC48), ("none", "no-such-type"))]
    snapshot = a_snapshot(*own, a_node("x", instance_type=NC24), a_node("y", instance_type=NC48), nap=True)
    round_with = rounds(monkeypatch, ProvisionedNodes, snapshot)

    first, second = snapshot.nodes
    assert round_with(first, second) == {"a", "b", "none"}
    assert round_with(first, second.model_copy(update={"unschedulable": True})) == {"none"}
    less = second.model_copy(update={"allocatable": {**second.allocatable, "memory": "1Gi"}})
    assert round_with(first, less) == {"b", "none"}
