"""The ledger of a cluster: incremental updates, and the free nodes for the packer."""

from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll.cluster.ledger import GpuLedger, gpu_ledger
from plimsoll.model import tensor_fusion
from plimsoll.model.cluster import Node, Pod
from plimsoll.model.kai import GPU_FRACTION, GPU_FRACTION_CONTAINER
from tests.builders import a_pod, a_snapshot
from tests.ledger.cluster import a_gpu_node, a_reservation, a_share, a_whole

NODES = ("n1", "n2")
GROUPS = ("g", "h", "i")
_node = st.sampled_from((*NODES, ""))
_name = st.sampled_from(("a", "b", "c", "d"))
_group = st.sampled_from(GROUPS)
pods = st.one_of(
    st.builds(
        a_share, _name, _node, _group, fraction=st.sampled_from(("0.2", "0.5", "0.8", "x")), deleting=st.booleans()
    ),
    st.builds(a_share, _name, st.just(""), _group, selected=st.sampled_from(NODES)),
    st.builds(
        lambda name, node, groups: a_share(name, node, *groups, devices=2),
        _name,
        _node,
        st.lists(_group, min_size=1, max_size=3, unique=True),
    ),
    st.builds(a_reservation, _group, _node, name=st.sampled_from(("r", "s", "t")), deleting=st.booleans()),
    st.builds(a_whole, _name, _node, st.integers(1, 3), deleting=st.booleans()),
    st.builds(a_share, _name, _node, _group, phase=st.just("Failed")),
)
nodes = st.builds(a_gpu_node, st.sampled_from(NODES), st.integers(0, 4))
states = st.tuples(
    st.lists(nodes, unique_by=lambda node: node.name, max_size=2),
    st.lists(pods, unique_by=lambda pod: pod.key, max_size=8),
)


@example([([a_gpu_node("n2", 0)], [a_share(name, "n2", "g", devices=2) for name in ("a", "b")])])
@given(st.lists(states, min_size=1, max_size=4))
def test_incremental_updates_give_the_same_accounts_as_a_new_ledger(rounds: list[tuple[list[Node], list[Pod]]]) -> None:
    ledger = GpuLedger()
    for some_nodes, some_pods in rounds:
        ledger.update(some_nodes, some_pods)
        fresh = GpuLedger()
        fresh.update(reversed(some_nodes), reversed(some_pods))
        assert list(ledger.accounts()) == list(fresh.accounts())


@given(states)
def test_no_more_is_free_than_exists(state: tuple[list[Node], list[Pod]]) -> None:
    ledger = GpuLedger()
    ledger.update(*state)
    for account in ledger.accounts():
        assert len(account.free_milli) == account.gpus or account.taken > account.gpus
        assert all(0 <= free <= 1000 for free in account.free_milli)
        assert sum(account.free_milli) + sum(min(1000, group.used_milli) for group in account.groups) <= (
            1000 * max(account.gpus, account.taken)
        )


@given(states, pods)
def test_an_additional_pod_frees_nothing_unless_it_is_a_reservation(
    state: tuple[list[Node], list[Pod]], pod: Pod
) -> None:
    ledger = GpuLedger()
    ledger.update(state[0], [each for each in state[1] if each.key != pod.key])
    before = {account.node.name: sum(account.free_milli) for account in ledger.accounts()}
    ledger.put_pod(pod)
    if pod.namespace == "team":
        assert all(sum(account.free_milli) <= before[account.node.name] for account in ledger.accounts())


def test_deleted_objects_free_what_they_used() -> None:
    ledger = GpuLedger()
    node, share, held = a_gpu_node(), a_share("a", "n1", "g"), a_reservation("g")
    ledger.update([node], [share, held])
    ledger.update([node], [])
    assert [account.free_milli for account in ledger.accounts()] == [(1000, 1000)]
    ledger.update([], [])
    assert list(ledger.accounts()) == []


def test_contradictions_of_all_nodes_are_reported() -> None:
    snapshot = a_snapshot(a_gpu_node("n1"), a_gpu_node("n2"), a_share("a", "n1", "g"), a_share("b", "n2"))
    found = gpu_ledger(snapshot).discrepancies()
    assert [(each.node, each.reason.value) for each in found] == [("n1", "NoReservation"), ("n2", "NoGroup")]


def test_equal_annotations_are_read_for_each_pod_by_its_label_and_its_containers() -> None:
    vram = {tensor_fusion.VRAM_REQUEST: "4Gi"}
    client = a_pod("client", node="n1", annotations=vram)
    client = client.model_copy(update={"labels": {tensor_fusion.COMPONENT: "client"}})
    named = {GPU_FRACTION: "0.5", GPU_FRACTION_CONTAINER: "server"}
    wrong = a_pod("wrong", node="n2", annotations=named).model_copy(update={"containers": ({"name": "other"},)})
    ledger = GpuLedger()
    pods = [client, a_pod("worker", node="n1", annotations=vram), a_pod("share", node="n2", annotations=named), wrong]
    ledger.update([a_gpu_node("n1"), a_gpu_node("n2")], pods)
    assert [account.taken for account in ledger.accounts()] == [0, 0], "nobody placed them"
    found = [(each.node, each.reason.value) for each in ledger.discrepancies()]
    assert found == [("n1", "NoGroup"), ("n2", "NoGroup"), ("n2", "UnreadableShare")]
