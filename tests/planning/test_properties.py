"""Properties of every plan, for any cluster."""

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from plimsoll.model import Plan, Reason, Snapshot
from plimsoll.model.api import Workspace
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan import plan, validate
from tests.builders import A100, NC24, a_claim, a_node, a_node_pool, a_snapshot, a_workspace, an_environment
from tests.planning.cluster import after, launched

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GPU = "nvidia.com/gpu"
NC48 = "Standard_NC48ads_A100_v4"
GPUS = {NC24.casefold(): 1, NC48.casefold(): 2}
MANY = 10_000
"""More deletions in one round than there are objects."""

names = st.sampled_from(["a", "b", "c"])
namespaces = st.sampled_from(["one", "two"])
times = st.integers(0, 3).map(lambda minute: f"2026-01-01T00:0{minute}:00Z")
types = st.sampled_from([NC24, NC48, NC24.lower()])
selectors = st.sampled_from([{}, {"pool": "a"}, {"pool": "b"}])


@st.composite
def workspaces(draw: st.DrawFn, nap: bool) -> list[Any]:
    keys = draw(st.lists(st.tuples(namespaces, names), min_size=1, max_size=4, unique=True))
    return [
        a_workspace(
            name,
            namespace=namespace,
            uid=draw(st.sampled_from(["", "u1", "u2"])),
            created=draw(times),
            deleting=draw(st.integers(0, 9)) == 0,
            selector=draw(selectors),
            instance_type=draw(types) if nap else None,
            replicas=draw(st.integers(0, 4)),
            preset=draw(st.sampled_from([None, "phi-4-mini-instruct", "llama-3.3-70b-instruct"])),
        )
        for namespace, name in keys
    ]


@st.composite
def claims(draw: st.DrawFn, nap: bool, workspaces: list[Workspace]) -> list[Any]:
    """Most are of one of the Workspaces."""
    owners = st.sampled_from([each.key for each in workspaces])
    count = draw(st.integers(0, 8))
    return [
        a_claim(
            f"claim-{number}",
            draw(st.one_of(owners, owners, st.tuples(namespaces, names))),
            uid=draw(st.sampled_from(["", "u1", "u2"])),
            ready=draw(st.booleans()),
            deleting=draw(st.integers(0, 5)) == 0,
            created=draw(times),
            node=draw(st.sampled_from(["", f"node-{number}"])) if nap else "",
        )
        for number in range(count)
    ]


@st.composite
def nodes(draw: st.DrawFn) -> list[Any]:
    numbers = range(draw(st.integers(0, 6)))
    return [
        a_node(
            f"node-{number}",
            draw(st.sampled_from(["a", "b"])),
            product=draw(st.sampled_from([None, A100, A100, A100])),
            count=GPUS[instance_type.casefold()],
            ready=draw(st.sampled_from([True, True, False, None])),
            cordoned=draw(st.integers(0, 5)) == 0,
            allocatable=draw(st.sampled_from([None, 0, 1])),
            instance_type=instance_type,
        )
        for number, instance_type in ((number, draw(st.sampled_from([NC24, NC48]))) for number in numbers)
    ]


@st.composite
def snapshots(draw: st.DrawFn, deletions: int | None = None) -> Snapshot:
    nap = draw(st.booleans())
    limits = {
        "gpus": draw(st.none() | st.integers(0, 12)),
        "nodes": draw(st.none() | st.integers(0, 8)),
        "deletionsPerTick": deletions or draw(st.integers(1, 4)),
    }
    provisioner = {"provisioner": draw(st.sampled_from(["nodeclaim", "static-nodepool"]))} if nap else {}
    environment = an_environment(
        nap, limits={key: value for key, value in limits.items() if value is not None}, **provisioner
    )
    pool_limits = {"nodes": draw(st.none() | st.integers(0, 8)), GPU: draw(st.none() | st.integers(0, 12))}
    pool = a_node_pool("pool", [NC24], limits={key: value for key, value in pool_limits.items() if value is not None})
    several = draw(workspaces(nap))
    objects = [*several, *draw(claims(nap, several)), *draw(nodes()), pool]
    snapshot = a_snapshot(*objects, environment=environment)
    # Half of them some time after a first round, with workloads and static NodePools.
    return after(snapshot, plan(snapshot, validate(snapshot), NOW)) if draw(st.booleans()) else snapshot


def of(snapshot: Snapshot) -> Plan:
    return plan(snapshot, validate(snapshot), NOW)


def cut_short(found: Plan) -> bool:
    """Whether a limit applied, under which deletions of this round may make room."""
    limited = Reason.LIMIT_EXCEEDED
    return any(each.reason is limited for each in found.verdicts) or any(limited in each for each in found.warnings)


@given(snapshots(MANY))
def test_after_a_plan_is_applied_the_next_plan_is_empty(snapshot: Snapshot) -> None:
    found = of(snapshot)
    assume(not cut_short(found))
    assert of(after(snapshot, found)).empty


@given(snapshots())
def test_rounds_under_a_deletion_limit_converge(snapshot: Snapshot) -> None:
    for _ in range(20):
        found = of(snapshot)
        if found.empty:
            return
        snapshot = after(snapshot, found)
    raise AssertionError("no rest after 20 rounds")


@given(snapshots(MANY))
def test_ready_nodes_and_workloads_lead_to_an_empty_plan(snapshot: Snapshot) -> None:
    found = of(snapshot)
    assume(not cut_short(found))
    up = launched(after(snapshot, found))
    assert of(after(up, of(up))).empty


@given(snapshots(), st.randoms(use_true_random=False))
def test_the_order_of_inputs_does_not_matter(snapshot: Snapshot, order: random.Random) -> None:
    def shuffled(items: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(order.sample(items, len(items)))

    mixed = snapshot.model_copy(
        update={
            "workspaces": shuffled(snapshot.workspaces),
            "nodes": shuffled(snapshot.nodes),
            "node_claims": shuffled(snapshot.node_claims),
            "node_pools": shuffled(snapshot.node_pools),
            "workloads": shuffled(snapshot.workloads),
        }
    )
    assert of(mixed) == of(snapshot)


def gpus(claim: NodeClaim) -> int:
    return int(claim.spec["resources"]["requests"]["nvidia.com/gpu"])


def is_of(manifest: dict[str, Any], instance_type: str) -> bool:
    spec = manifest["spec"].get("template", manifest)["spec"]
    return any(instance_type in each.get("values", ()) for each in spec["requirements"])


def many_wanted(limits: dict[str, int], pool_limits: dict[str, int]) -> Snapshot:
    """Six NodeClaims are wanted, and fewer are allowed."""
    environment = an_environment(True, limits=limits, provisioner="nodeclaim")
    wanted = [a_workspace(name, instance_type=NC24, replicas=3) for name in ("a", "b")]
    return a_snapshot(*wanted, a_node_pool("pool", [NC24], limits=pool_limits), environment=environment)


@pytest.fixture(scope="module")
def seen() -> Iterator[Counter[str]]:
    """Counts what the examples were about, most of which must be about limits."""
    counted: Counter[str] = Counter()
    yield counted
    assert counted["made"] >= counted["all"] // 10, counted
    assert counted["cut short"] >= counted["all"] // 10, counted
    assert counted["made and cut short"] >= 4, counted


@settings(max_examples=60)
@given(snapshot=snapshots())
@example(snapshot=many_wanted({"nodes": 4}, {}))
@example(snapshot=many_wanted({"gpus": 5}, {}))
@example(snapshot=many_wanted({}, {"nodes": 4}))
@example(snapshot=many_wanted({}, {GPU: 5}))
def test_a_plan_does_not_exceed_limits(snapshot: Snapshot, seen: Counter[str]) -> None:
    found = of(snapshot)
    limits = snapshot.environment.spec.limits
    made = [each for each in found.creations if each.key.kind in ("NodeClaim", "NodePool")]
    seen["all"] += 1
    seen["made"] += bool(made)
    seen["cut short"] += cut_short(found)
    seen["made and cut short"] += bool(made) and cut_short(found)
    assert len(found.deletions) <= limits.deletions_per_tick
    if not made:
        return
    # Deletions take time: what is made must fit beside what is not yet gone.
    everything = after(snapshot, found.model_copy(update={"deletions": ()}))
    held = [(claim.instance_types[0], gpus(claim)) for claim in everything.node_claims]
    for pool in everything.node_pools:
        held += [(name, GPUS[name.casefold()]) for name in pool.instance_types for _ in range(pool.replicas or 0)]
    assert limits.nodes is None or len(held) <= limits.nodes
    assert limits.gpus is None or sum(number for _, number in held) <= limits.gpus
    bounds = snapshot.node_pools[0].limits
    of_pool = [number for name, number in held if name.casefold() == NC24.casefold()]
    if any(is_of(each.manifest, NC24) for each in made):
        assert len(of_pool) <= int(bounds.get("nodes", MANY))
        assert sum(of_pool) <= int(bounds.get(GPU, MANY))


@given(snapshots(MANY))
def test_ready_claims_are_deleted_after_unready_ones(snapshot: Snapshot) -> None:
    gone = {deletion.key.name for deletion in of(snapshot).deletions}
    kept = {claim.name for claim in after(snapshot, of(snapshot)).node_claims}
    failed = {node.name for node in snapshot.nodes if node.ready is False}
    for workspace in snapshot.workspaces:
        own = [
            claim
            for claim in snapshot.node_claims
            if claim.owner[:2] == workspace.key and not claim.deleting and not workspace.deleting
            if claim.owner[2] in ("", workspace.uid) or not workspace.uid
        ]
        ready = {claim.name for claim in own if claim.ready and claim.node_name not in failed}
        ready_gone = ready & gone
        spared = [claim.name for claim in own if claim.name not in ready and claim.name in kept]
        assert not (ready_gone and spared)


@given(snapshots())
def test_objects_of_a_refused_workspace_are_not_changed(snapshot: Snapshot) -> None:
    found = of(snapshot)
    deleting = {workspace.key for workspace in snapshot.workspaces if workspace.deleting}
    refused = {(each.workspace.namespace, each.workspace.name) for each in found.refusals} - deleting
    touched = {(each.owner.namespace, each.owner.name) for each in (*found.creations, *found.updates)}
    assert not refused & touched


@given(snapshots())
def test_nodes_are_provisioned_only_with_auto_provisioning(snapshot: Snapshot) -> None:
    if not snapshot.environment.spec.auto_provisioning:
        assert all(each.key.kind != "NodeClaim" for each in of(snapshot).creations)
