"""No node is requested for a workload that the apiserver does not accept in a dry run."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from plimsoll.apply import ClusterUnreachableError, Outcome
from plimsoll.loop import BURST, FIRST_PAUSE, Loop, RoundResult
from plimsoll.model import Change, ObjectKey, Plan, Reason, Refusal, Snapshot
from plimsoll.model.api import Workspace
from plimsoll.plan import plan, validate
from tests.builders import NC24, a_node, a_snapshot, a_template, a_workspace, an_environment
from tests.looping.cluster import START, Cluster, wanting
from tests.planning.cluster import after, launched

REFUSAL = Refusal(Reason.INVALID_SPEC, ".spec.template.spec.foo: field not declared in schema")


def owners(made: Plan) -> list[str]:
    """Of the NodeClaims."""
    return [each.owner.name for each in made.creations if each.key.kind == "NodeClaim"]


def refusals(made: Plan) -> dict[str, tuple[Reason, str]]:
    return {each.workspace.name: (each.reason, each.message) for each in made.refusals}


def run(loop: Loop) -> Plan:
    result: RoundResult = loop.run_round()
    assert result.plan is not None
    return result.plan


def unlike(workspaces: int) -> Snapshot:
    """As `wanting`, each with an image of its own."""
    seen = wanting(workspaces)
    made = [
        a_workspace(
            each.name, uid=each.uid, instance_type=NC24, selector={}, template=a_template(image=f"own:{number}")
        )
        for number, each in enumerate(seen.workspaces)
    ]
    return seen.model_copy(update={"workspaces": tuple(made)})


def test_a_refused_workspace_says_why_and_gets_no_node_and_others_do() -> None:
    cluster = Cluster(unlike(3))
    cluster.refusals = {"ws1": REFUSAL}
    made = run(cluster.loop())
    assert owners(made) == ["ws0", "ws2"]
    assert refusals(made) == {"ws1": REFUSAL}
    assert [sorted(each) for each in cluster.asked] == [["ws0", "ws1", "ws2"]]


def test_of_workloads_that_are_alike_one_is_asked_and_all_if_it_is_refused() -> None:
    cluster = Cluster(wanting(3))
    assert owners(run(cluster.loop())) == ["ws0", "ws1", "ws2"]
    assert cluster.asked == [["ws0"]]
    cluster = Cluster(wanting(3))
    cluster.refusals = {"ws0": REFUSAL, "ws2": REFUSAL}
    assert owners(run(cluster.loop())) == ["ws1"]
    assert cluster.asked == [["ws0"], ["ws1", "ws2"]]


def test_of_servers_of_one_preset_one_is_asked_in_each_namespace() -> None:
    made = (
        a_workspace(
            f"ws{number}", uid=f"u{number}", instance_type=NC24, selector={}, namespace=namespace, preset="phi-4"
        )
        for number, namespace in enumerate(["a", "a", "b", "b"])
    )
    cluster = Cluster(a_snapshot(*made, nap=True))
    assert len(owners(run(cluster.loop()))) == 4
    assert cluster.asked == [["ws0", "ws2"]]


def test_it_is_asked_again_after_pauses_that_double_and_then_served() -> None:
    cluster = Cluster(wanting(1))
    cluster.refusals = {"ws0": REFUSAL}
    loop, first = cluster.loop(), FIRST_PAUSE.total_seconds()
    asked = []
    for second in range(20):
        before = len(cluster.asked)
        assert refusals(run(loop)) == {"ws0": REFUSAL}, "in each round, also while it is asked"
        asked += [second] * (len(cluster.asked) - before)
        cluster.now += timedelta(seconds=1)
    assert asked == [0, first, 3 * first, 7 * first]
    cluster.refusals = {}
    cluster.now += timedelta(hours=1)
    assert owners(run(loop)) == ["ws0"]


@pytest.mark.parametrize("of", ["workspace", "environment"])
def test_what_is_changed_is_asked_at_once(of: str) -> None:
    seen = wanting(1)
    cluster = Cluster(seen)
    cluster.refusals = {"ws0": REFUSAL}
    loop = cluster.loop()
    run(loop)
    cluster.refusals = {}
    assert not owners(run(loop)), "nothing was changed"
    newer = {"generation": 2}
    changed: dict[str, dict[str, Any]] = {
        "workspace": {"workspaces": tuple(each.model_copy(update=newer) for each in seen.workspaces)},
        "environment": {"environment": seen.environment.model_copy(update=newer)},
    }
    cluster.seen = [seen.model_copy(update=changed[of])]
    assert owners(run(loop)) == ["ws0"]


def test_what_a_status_says_decides_nothing() -> None:
    cluster = Cluster(wanting(1).model_copy(update={"refused_workloads": {"u0": REFUSAL}}))
    assert not plan(cluster.snapshot(), validate(cluster.snapshot()), START).creations, "as commands show it"
    assert owners(run(cluster.loop())) == ["ws0"]


def test_a_refused_workspace_takes_nothing_of_a_limit() -> None:
    environment = an_environment(nap=True, limits={"nodes": 1})
    cluster = Cluster(unlike(2).model_copy(update={"environment": environment}))
    cluster.refusals = {"ws0": REFUSAL}
    made = run(cluster.loop())
    assert owners(made) == ["ws1"]
    assert cluster.asked == [["ws0"], ["ws1"]], "also that of the one that takes its place"


def test_without_an_answer_nothing_is_requested() -> None:
    class Silent(Cluster):
        def dry_run(self, workloads: Sequence[Change]) -> Mapping[ObjectKey, Refusal]:
            raise ClusterUnreachableError("no answer")

        def apply(self, plan: Plan) -> Outcome:
            raise AssertionError

    with pytest.raises(ClusterUnreachableError):
        Silent(wanting(1)).loop().run_round()


def test_each_workload_of_a_burst_is_asked_once() -> None:
    cluster = Cluster(unlike(BURST), unlike(BURST + 7))
    run(cluster.loop())
    assert [len(each) for each in cluster.asked] == [BURST, 7]


def dry_runs(seen: Snapshot) -> list[str]:
    return [f"{each.key.kind} {each.key.name}" for each in plan(seen, validate(seen), START).dry_runs]


def test_only_workloads_that_new_nodes_are_for_are_asked() -> None:
    def one(**fields: Any) -> Workspace:
        return a_workspace(instance_type=NC24, selector={}, **fields)

    assert dry_runs(a_snapshot(one(), nap=True)) == ["Deployment ws"]
    assert not dry_runs(a_snapshot(one(replicas=0), nap=True))
    assert not dry_runs(a_snapshot(a_workspace(inference=False, count=1, instance_type=NC24, selector={}), nap=True))
    assert not dry_runs(a_snapshot(a_node("node", "a", allocatable=1), a_workspace())), "an existing node"


def test_a_lost_node_of_a_workload_that_runs_is_replaced_unasked_and_more_replicas_are_asked() -> None:
    seen = a_snapshot(a_workspace(instance_type=NC24, selector={}), nap=True)
    for _ in range(4):
        seen = launched(after(seen, plan(seen, validate(seen), START)))
    assert [each.kind for each in seen.workloads] == ["Deployment"]
    changed = a_workspace(instance_type=NC24, selector={}, template=a_template())
    lost = seen.model_copy(update={"workspaces": (changed,), "node_claims": (), "nodes": ()})
    assert plan(lost, validate(lost), START).creations
    assert not dry_runs(lost)
    more = a_workspace(instance_type=NC24, selector={}, replicas=2)
    assert dry_runs(seen.model_copy(update={"workspaces": (more,)})) == ["Deployment ws"]
