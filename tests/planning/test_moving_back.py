"""Replicas that run on another alternative move back to the first one (`moveBackSeconds`), by a rollout with Surge."""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.labels import CAPACITY_TYPE, INSTANCE_TYPE, SPEC_HASH
from plimsoll.model import Plan
from plimsoll.model.api import Provisioning, Workspace
from plimsoll.model.cluster import Pod
from plimsoll.model.karpenter import NodeClaim
from plimsoll.model.meta import Condition
from plimsoll.plan import validate
from plimsoll.plan.owned import as_status
from tests.builders import NC24, a_pod, a_snapshot, a_template, a_workspace, an_environment
from tests.planning.cluster import after, launched, round_of

NC40 = "Standard_NC40ads_H100_v5"
START = datetime(2026, 1, 3, tzinfo=UTC)
INTERVAL = 600
TICK = 20


def wanting(
    replicas: int = 1, max_surge: int | None = None, strategy: str = "Surge", image: str = "own:1", **fields: Any
) -> Workspace:
    given: dict[str, Any] = {"replicas": replicas, "selector": {}, "uid": "u", "template": a_template(image=image)}
    manifest = a_workspace(**({"instance_types": (NC24, NC40)} | given | fields))
    spec = manifest.spec.manifest()
    spec["resource"]["moveBackSeconds"] = INTERVAL
    spec["inference"]["rollout"] = {"strategy": strategy, "maxSurge": max_surge or replicas}
    return manifest.model_copy(update={"spec": type(manifest.spec).model_validate(spec)})


class Run:
    """A cluster with Karpenter and the controller of Deployments, in steps of some seconds."""

    def __init__(self, workspace: Workspace, **spec: Any) -> None:
        self.snapshot = a_snapshot(workspace, environment=an_environment(nap=True, **spec))
        self.available: Collection[str] = (NC40,)
        """Instance types of which the provider has capacity."""
        self.slow = False
        """Whether nodes take until this is False to be there."""
        self.works = True
        """Whether new pods become Ready."""
        self.second = 0
        self.pods: dict[str, tuple[str, str, bool]] = {}
        """By name: hash of the template, node, whether it is Ready."""
        self.plans: list[Plan] = []

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=self.second)

    @property
    def claims(self) -> list[NodeClaim]:
        return [each for each in self.snapshot.node_claims if not each.deleting]

    @property
    def record(self) -> Provisioning:
        return self.snapshot.workspaces[0].status.provisioning

    def ready(self) -> int:
        return sum(ready for _, _, ready in self.pods.values())

    def types_in_use(self) -> set[str]:
        types = {each.name: each.instance_type for each in self.snapshot.nodes}
        return {types[node] for _, node, _ in self.pods.values() if node in types}

    def bought(self) -> list[tuple[str, int]]:
        """(type, number) of the NodeClaims of each plan that creates some."""
        found = []
        for each in self.plans:
            types = [NodeClaim.read(one.manifest).instance_types[0] for one in each.creations if one.key.kind == CLAIM]
            found += [(name, types.count(name)) for name in sorted(set(types))]
        return found

    def steps(self, number: int) -> Iterator[None]:
        for _ in range(number):
            self.step()
            yield

    def run(self, number: int) -> None:
        for _ in self.steps(number):
            pass

    def step(self) -> None:
        found, seen = round_of(self.snapshot, self.now)
        self.plans.append(found)
        new = {each.key.name for each in found.creations}
        snapshot = after(seen, found)
        stamped = self.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        claims = [
            each.model_copy(update={"creation_timestamp": stamped}) if each.name in new else each
            for each in snapshot.node_claims
            if each.node_name or each.instance_types[0] in self.available
        ]
        seen_before = {each.name for each in self.snapshot.node_claims}
        coming = [each for each in claims if not each.node_name and (self.slow or each.name not in seen_before)]
        there = [each for each in claims if each not in coming]
        self.snapshot = launched(snapshot.model_copy(update={"node_claims": tuple(there)}))
        self.snapshot = self.snapshot.model_copy(update={"node_claims": (*self.snapshot.node_claims, *coming)})
        nodes = {each.name for each in self.snapshot.nodes}
        self.pods = {name: pod for name, pod in self.pods.items() if pod[1] in nodes}
        self._deploy()
        self.second += TICK

    def change(self, workspace: Workspace) -> None:
        changed = workspace.model_copy(update={"status": self.snapshot.workspaces[0].status})
        self.snapshot = self.snapshot.model_copy(update={"workspaces": (changed,)})

    def _deploy(self) -> None:
        if not self.snapshot.workloads:
            return
        [workload], workspace = self.snapshot.workloads, self.snapshot.workspaces[0]
        template = workload.annotations[SPEC_HASH]
        manifest = next(
            each.manifest
            for found in reversed(self.plans)
            for each in (*found.creations, *found.updates)
            if each.key.kind == "Deployment"
        )
        self.pods = {
            name: (made_of, node, ready or (self.works or made_of != template))
            for name, (made_of, node, ready) in self.pods.items()
        }
        replicas = workspace.replicas
        current = [name for name, pod in self.pods.items() if pod[0] == template]
        earlier = sorted(name for name, pod in self.pods.items() if pod[0] != template)
        unready = [name for name in earlier if not self.pods[name][2]]
        gone = unready or (earlier if self.ready() > replicas and not self.second % (3 * TICK) else [])
        for name in gone[:1]:
            del self.pods[name]
        free = [each for each in self._nodes(manifest) if each not in {pod[1] for pod in self.pods.values()}]
        more = min(replicas - len(current), replicas + workspace.surge - len(self.pods), len(free))
        for node in free[: max(0, more)]:
            self.pods[f"{template}-{self.second}-{node}"] = (template, node, False)
        stalled = Condition(type="Progressing", status="False", reason="ProgressDeadlineExceeded")
        conditions = () if self.works or not current or self.ready() > replicas else (stalled,)
        counts = {"pods": len(self.pods), "updated_replicas": sum(each[0] == template for each in self.pods.values())}
        pods = tuple(self._pod(name, *pod) for name, pod in sorted(self.pods.items()))
        changed = workload.model_copy(update={**counts, "ready_replicas": self.ready(), "conditions": conditions})
        self.snapshot = self.snapshot.model_copy(update={"workloads": (changed,), "pods": pods})

    def _nodes(self, manifest: dict[str, Any]) -> list[str]:
        """Nodes that the pods of the manifest may be on."""
        affinity = manifest["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
        [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        allowed = next(each["values"] for each in term["matchExpressions"] if each["key"] == INSTANCE_TYPE)
        return sorted(each.name for each in self.snapshot.nodes if each.instance_type in allowed)

    def _pod(self, name: str, _: str, node: str, ready: bool) -> Pod:
        conditions = (Condition(type="Ready", status=str(ready)),)
        return a_pod(name, self.snapshot.workspaces[0], node=node).model_copy(update={"conditions": conditions})


CLAIM = "NodeClaim"


def on_second(replicas: int = 1, **fields: Any) -> Run:
    """The replicas run on the second type, because there was none of the first."""
    run = Run(wanting(replicas), **fields)
    run.run(8)
    assert (run.types_in_use(), run.ready()) == ({NC40}, replicas)
    return run


def of_first(run: Run) -> list[NodeClaim]:
    return [each for each in run.claims if each.instance_types[0] == NC24]


def requested(replicas: int) -> Run:
    """Nodes of the first type are requested, and not there yet."""
    run = on_second(replicas)
    run.available, run.slow = (NC24, NC40), True
    while len(of_first(run)) < replicas:
        run.step()
        assert run.second < 3 * INTERVAL
    return run


@pytest.mark.parametrize("replicas", [1, 3])
def test_replicas_move_to_the_first_type_once_all_of_its_nodes_are_there(replicas: int) -> None:
    run = on_second(replicas)
    run.available = (NC24, NC40)
    for _ in run.steps(60):
        assert run.ready() >= replicas, "never dark"
        assert len(run.claims) <= 2 * replicas
    assert run.types_in_use() == {NC24}
    assert [each.instance_types[0] for each in run.claims] == [NC24] * replicas
    assert run.record.alternative == (NC24, "")
    reasons = [each.reason for found in run.plans for each in found.updates]
    assert [each for each in reasons if "replicas move to" in each] == reasons, "the only change of the workload"
    assert run.bought()[-1] == (NC24, replicas), "all at once, and nothing afterwards"
    names = [each.key.name for found in run.plans for each in found.creations if each.key.kind == CLAIM]
    assert len(set(names)) == len(names), "events of one that failed are of no other"
    assert all(each.empty for each in run.plans[-10:])


def test_while_there_is_none_of_the_first_type_it_is_asked_for_again_and_again_but_not_sooner() -> None:
    run = on_second(2)
    first = len(run.plans)
    for _ in run.steps(5 * INTERVAL // TICK):
        assert (run.types_in_use(), run.ready()) == ({NC40}, 2)
        # Karpenter deletes each request at once; nothing of it is counted against the type that is used.
        assert run.record.failures == 0
    asked = [each for each in run.plans[first:] if each.creations]
    assert 3 <= len(asked) <= 5
    assert run.record.move_back.tries == len(asked)
    assert "was deleted before it was Launched" in run.record.move_back.message
    status = as_status(run.record)
    assert Provisioning.model_validate(status) == run.record


def test_if_one_node_of_several_fails_the_others_go_and_no_replica_moves() -> None:
    run = requested(2)
    lost = of_first(run)[1]
    left = tuple(each for each in run.snapshot.node_claims if each.name != lost.name)
    run.snapshot = run.snapshot.model_copy(update={"node_claims": left})
    run.step()
    assert not of_first(run)
    run.available = (NC40,)
    run.run(2 * INTERVAL // TICK)
    assert (run.types_in_use(), run.ready(), len(run.claims)) == ({NC40}, 2, 2)


def test_no_replica_moves_before_all_nodes_are_ready() -> None:
    run = requested(2)
    for _ in run.steps(10):
        assert (run.types_in_use(), run.record.alternative) == ({NC40}, (NC40, ""))
    run.slow = False
    run.run(20)
    assert (run.types_in_use(), run.ready()) == ({NC24}, 2)


def test_a_rollout_meanwhile_has_the_temporary_nodes() -> None:
    run = requested(2)
    run.change(wanting(2, image="own:2"))
    for _ in run.steps(6):
        assert len(run.claims) <= 4
    assert not of_first(run)
    run.slow = False
    for _ in run.steps(INTERVAL // TICK):
        assert run.ready() >= 2
        assert len(run.claims) <= 4


@pytest.mark.parametrize("spec", [{"limits": {"nodes": 3}}, {"limits": {"gpus": 3}}])
def test_nothing_is_requested_beyond_a_limit_and_it_is_told(spec: dict[str, Any]) -> None:
    run = on_second(2, **spec)
    run.available = (NC24, NC40)
    before = len(run.bought())
    run.run(2 * INTERVAL // TICK)
    assert len(run.bought()) == before, "one of two nodes would be of no use"
    assert any("do not move to" in each and "limits." in each for each in run.plans[-1].warnings)


@pytest.mark.parametrize(
    "workspace", [wanting(2, max_surge=1), wanting(2, strategy="Recreate")], ids=["maxSurge", "Recreate"]
)
def test_without_temporary_nodes_for_all_replicas_none_moves_and_it_is_told(workspace: Workspace) -> None:
    [verdict] = validate(a_snapshot(workspace, environment=an_environment(nap=True)))
    assert verdict.accepted
    [warning] = [each for each in verdict.warnings if "moveBackSeconds has no effect" in each]
    assert (
        "no effect: all 2 replicas move at once: set inference.rollout.strategy to Surge and maxSurge to 2" in warning
    )
    run = Run(workspace)
    run.run(8)
    run.available = (NC24, NC40)
    before = len(run.bought())
    run.run(2 * INTERVAL // TICK)
    assert (run.types_in_use(), len(run.bought())) == ({NC40}, before)


def test_if_the_new_pods_are_never_ready_the_old_ones_serve_and_nothing_more_is_bought() -> None:
    run = on_second(1)
    run.available, run.works = (NC24, NC40), False
    run.run(2 * INTERVAL // TICK)
    bought = len(run.bought())
    for _ in run.steps(3 * INTERVAL // TICK):
        assert (run.ready(), {each.instance_types[0] for each in run.claims}) == (1, {NC40})
    assert len(run.bought()) == bought, "no second try until the template changes"
    assert any("deadline of the rollout" in each for each in run.plans[-1].warnings)


def test_a_lost_node_of_the_first_type_is_replaced_during_the_move() -> None:
    run = on_second(2)
    run.available = (NC24, NC40)
    while run.record.alternative == (NC40, ""):
        run.step()
        assert run.second < 3 * INTERVAL
    lost = of_first(run)[0]
    claims = tuple(each for each in run.snapshot.node_claims if each.name != lost.name)
    nodes = tuple(each for each in run.snapshot.nodes if each.name != lost.node_name)
    run.snapshot = run.snapshot.model_copy(update={"node_claims": claims, "nodes": nodes})
    for _ in run.steps(20):
        assert run.ready() >= 2
    assert run.types_in_use() == {NC24}
    assert len(run.claims) == 2


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_move_that_is_given_up_leaves_nodes_of_one_type(steps: int) -> None:
    run = on_second(2)
    run.available = (NC24, NC40)
    while run.record.alternative == (NC40, ""):
        run.step()
    run.run(steps)
    run.change(wanting(2, strategy="Recreate"))
    run.run(80)
    assert run.ready() == len(run.claims) == 2
    assert len(run.types_in_use()) == 1


def test_replicas_move_back_to_the_first_way_to_pay() -> None:
    workspace = wanting(1, instance_types=(), instance_type=NC24, capacity_types=("spot", "on-demand"))
    run = Run(workspace)
    found, seen = round_of(run.snapshot, run.now)
    gone = after(seen, found).model_copy(update={"node_claims": ()})
    _, run.snapshot = round_of(gone, run.now)
    run.available = (NC24,)
    run.run(6)
    assert [each.allowed_values[CAPACITY_TYPE] for each in run.claims] == [("on-demand",)]
    run.run(2 * INTERVAL // TICK)
    assert [each.allowed_values[CAPACITY_TYPE] for each in run.claims] == [("spot",)]
    [update] = [each for found in run.plans for each in found.updates]
    affinity = update.manifest["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert {"key": CAPACITY_TYPE, "operator": "In", "values": ["spot"]} in term["matchExpressions"]


@settings(deadline=None, max_examples=8)
@given(data=st.data(), replicas=st.integers(1, 3))
def test_whatever_the_provider_has_all_replicas_serve_and_end_on_one_type(data: st.DataObject, replicas: int) -> None:
    """Nodes that are there stay; of which type there are more changes at any time."""
    run = on_second(replicas)
    for _ in range(data.draw(st.integers(1, 4))):
        run.available = data.draw(st.sampled_from(((NC24,), (NC40,), (NC24, NC40), ())))
        for _ in run.steps(data.draw(st.integers(1, 20))):
            assert run.ready() >= replicas
            assert len(run.claims) <= 2 * replicas
    run.available = (NC24, NC40)
    run.run(INTERVAL // TICK + 20)
    assert (run.types_in_use(), len(run.claims)) == ({NC24}, replicas)


def test_without_several_alternatives_there_is_nowhere_to_move_back_to() -> None:
    with pytest.raises(ValueError, match="moveBackSeconds moves replicas to the first of several"):
        wanting(1, instance_types=(), instance_type=NC24)
