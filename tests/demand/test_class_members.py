"""The pods of each class, updated incrementally as pods and PodGroups change, equal those of a new computation."""

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.pods import pod_changes
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import PodGroup
from plimsoll.plan.classes import Classes
from tests.builders import a_snapshot, a_waiting_pod

QUEUES = ("left", "right", "")


def a_group(name: str, queue: str) -> PodGroup:
    return PodGroup.read({"metadata": {"name": name, "namespace": "default"}, "spec": {"queue": queue, "minMember": 2}})


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    pod = a_waiting_pod(draw(st.sampled_from("abcd")), gpu_fraction="0.5", queue=draw(st.sampled_from(QUEUES)))
    group = {"pod-group-name": draw(st.sampled_from(["one", "two"]))}
    changed = {"annotations": pod.annotations | group, "namespace": "default"}
    return pod.model_copy(update=changed | ({"node_name": "node"} if draw(st.integers(0, 3)) == 0 else {}))


def groups() -> st.SearchStrategy[PodGroup]:
    return st.builds(a_group, st.sampled_from(["one", "two"]), st.sampled_from(QUEUES))


@given(st.lists(st.tuples(st.lists(pods(), max_size=3), st.lists(groups(), max_size=2)), min_size=2, max_size=6))
def test_incremental_classes_equal_newly_computed_ones(rounds: list[tuple[list[Pod], list[PodGroup]]]) -> None:
    kept, before = Classes(), None
    held_pods: dict[str, Pod] = {}
    held_groups: dict[str, PodGroup] = {}
    for changed_pods, changed_groups in rounds:
        # Values that exist are replaced, others are added or removed.
        for pod in changed_pods:
            held_pods.pop(pod.name, None) or held_pods.update({pod.name: pod})
        for group in changed_groups:
            held_groups.pop(group.name, None) or held_groups.update({group.name: group})
        snapshot = a_snapshot(*held_pods.values(), *held_groups.values())
        changes = None if before is None else pod_changes(before.pods, snapshot.pods)
        found, fresh = kept.update(snapshot, changes), Classes().update(snapshot, None)
        assert {name: (each.classes, each.pods) for name, each in found.items()} == {
            name: (each.classes, each.pods) for name, each in fresh.items()
        }
        assert kept.groups == {group.key: group for group in snapshot.pod_groups}
        before = snapshot
