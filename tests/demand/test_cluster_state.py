"""The state of a cluster is kept up to date by what changed, and equals one that is read anew."""

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model.cluster import Node, Pod
from plimsoll.plan.demand import ClusterStates
from tests.builders import a_gpu_node, a_queue, a_snapshot, a_waiting_pod

NODES = [a_gpu_node(name, gpus=gpus) for name, gpus in (("a", 1), ("a", 2), ("b", 2), ("c", 4))]
PODS = [
    a_waiting_pod("waits", gpu_fraction="0.5", queue="team"),
    a_waiting_pod("waits", gpu_fraction="0.6", queue="other"),
    a_waiting_pod("whole", gpus=1, queue="team", node="a", reason=None, phase="Running"),
    a_waiting_pod("whole", gpus=1, queue="team", node="b", reason=None, phase="Running"),
    a_waiting_pod("typo", gpu_fraction="half", queue="team"),
]


def by_name(objects: list[Node] | list[Pod]) -> list[Node | Pod]:
    return list({each.name: each for each in objects}.values())


@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from(NODES)), st.lists(st.sampled_from(PODS)), st.booleans()),
        min_size=2,
        max_size=5,
    )
)
def test_a_state_equals_one_that_is_read_anew(rounds: list[tuple[list[Node], list[Pod], bool]]) -> None:
    kept = ClusterStates()
    for nodes, pods, queued in rounds:
        queues = (a_queue("team"), a_queue("other")) if queued else ()
        snapshot = a_snapshot(*by_name(nodes), *by_name(pods), *queues)
        assert kept.of(snapshot) == ClusterStates().of(snapshot)


def test_what_did_not_change_is_the_same_and_a_state_does_not_change() -> None:
    kept = ClusterStates()
    first = kept.of(a_snapshot(NODES[0], NODES[3], PODS[0]))
    second = kept.of(a_snapshot(NODES[0], NODES[3], PODS[0], PODS[2]))
    assert (first.accounts["a"].whole, second.accounts["a"].whole) == (0, 1)
    assert first.accounts["c"] is second.accounts["c"]
    third = kept.of(a_snapshot(NODES[0], PODS[0], PODS[2]))
    assert (set(second.accounts), set(third.accounts)) == ({"a", "c"}, {"a"})
    assert third.waiting == second.waiting
