"""For any order of events and any kill of a binder, no GPU is assigned twice."""

from collections import defaultdict

from hypothesis import example, given, settings
from hypothesis import strategies as st

from plimsoll.cluster.pods import gpu_groups, read_request
from plimsoll.labels import RESERVED_GPU
from plimsoll.packing import Milli
from tests.binding.cluster import Cluster, a_gpu_node, a_plain_pod, a_share

FRACTIONS = ("0.2", "0.3", "0.5", "0.7", "0.9")
_share = st.tuples(st.just("share"), st.sampled_from(FRACTIONS), st.integers(1, 2))
_part = st.tuples(st.just("part of a round"), st.integers(0, 3))
_plain = st.sampled_from([("round",), ("restart",), ("kubelet",), ("settle",), ("delete a pod",), ("later",)])
events = st.lists(st.one_of(_share, _part, _plain), max_size=25)
_loss = st.sampled_from([("lose a reservation",), ("another pod gets the GPU of a reservation",)])
losses = st.lists(st.one_of(_share, _part, _plain, _loss), max_size=25)


def happen(cluster: Cluster, event: tuple[object, ...], number: int) -> None:
    match event:
        case ("share", str(fraction), int(devices)):
            cluster.add(a_share(f"p{number}", fraction, devices=devices))
        case ("part of a round", int(most)):
            cluster.round(most)
            cluster.restart()  # killed in the middle
        case ("round",):
            cluster.round()
        case ("settle",):
            cluster.settle()
        case ("restart",):
            cluster.restart()
        case ("kubelet",):
            cluster.play_kubelet()
        case ("later",):
            cluster.now += 35.0
        case ("delete a pod",):
            for pod in [each for each in cluster.pods.values() if each.namespace == "team"][:1]:
                cluster.delete(pod)
        case ("lose a reservation",):
            for pod in cluster.reservations()[:1]:
                cluster.delete(pod)
        case ("another pod gets the GPU of a reservation",):
            for pod in [each for each in cluster.reservations() if RESERVED_GPU in each.annotations][:1]:
                cluster.delete(pod)
                other = a_plain_pod(f"whole-{number}", pod.node_name, gpus=1)
                cluster.add(other)
                cluster.given[(pod.node_name, other.uid)] = pod.annotations[RESERVED_GPU]


def assert_sound(cluster: Cluster) -> None:
    """Shares of one GPU are at most the whole GPU, and one GPU belongs to one group."""
    taken: dict[tuple[str, str], Milli] = defaultdict(int)
    groups: dict[tuple[str, str], set[str]] = defaultdict(set)
    for pod in cluster.pods.values():
        if pod.namespace != "team" or not pod.node_name:
            continue
        share = read_request(pod).share
        assert share is not None
        gpus = cluster.gpus_of(pod.name).split(",")
        assert len(set(gpus)) == share.devices
        for gpu, group in zip(gpus, gpu_groups(pod), strict=True):
            taken[(pod.node_name, gpu)] += share.milli or 0
            groups[(pod.node_name, gpu)].add(group)
    assert all(milli <= 1000 for milli in taken.values())
    assert all(len(names) == 1 for names in groups.values())
    for node in cluster.nodes:
        there = [pod for pod in cluster.pods.values() if pod.node_name == node.name and not pod.finished]
        assert len(there) <= int(node.allocatable["pods"])


def a_cluster(pods: int = 110) -> Cluster:
    return Cluster([a_gpu_node("n1", gpus=2, pods=pods), a_gpu_node("n2", gpus=1, pods=pods)])


@settings(max_examples=200)
@given(events, st.sampled_from([2, 4, 110]))
def test_no_gpu_and_no_room_for_a_pod_is_assigned_twice(happening: list[tuple[object, ...]], pods: int) -> None:
    cluster = a_cluster(pods)
    for number, event in enumerate(happening):
        happen(cluster, event, number)
        assert_sound(cluster)
    cluster.settle()
    assert_sound(cluster)
    assert not cluster.evicted
    waiting = [pod.name for pod in cluster.pods.values() if pod.namespace == "team" and not pod.node_name]
    assert set(waiting) <= set(cluster.messages)


def gpus_of_others(cluster: Cluster) -> set[str]:
    others = {pod.uid for pod in cluster.pods.values() if pod.namespace == "other"}
    return {gpu for (_, uid), gpu in cluster.given.items() if uid in others}


@settings(max_examples=200)
@given(losses)
@example([("share", "0.5", 1), ("settle",), ("another pod gets the GPU of a reservation",)])
def test_lost_reservations_are_repaired_or_their_pods_evicted(happening: list[tuple[object, ...]]) -> None:
    cluster = a_cluster()
    for number, event in enumerate(happening):
        happen(cluster, event, number)
    cluster.settle()
    for _ in range(3):
        cluster.now += 1000.0
        cluster.settle()
    assert_sound(cluster)
    bound = {
        group for pod in cluster.pods.values() if pod.node_name and pod.namespace == "team" for group in gpu_groups(pod)
    }
    assert {gpu_groups(pod)[0] for pod in cluster.reservations()} == bound
    shares = [pod.name for pod in cluster.pods.values() if pod.namespace == "team" and pod.node_name]
    used = {gpu for name in shares for gpu in cluster.gpus_of(name).split(",")}
    assert not used & gpus_of_others(cluster)
    assert not cluster.evicted or gpus_of_others(cluster), "no pod is evicted while the node has a GPU for it"


@given(st.lists(st.sampled_from(FRACTIONS), max_size=8))
def test_a_binder_after_a_kill_creates_nothing_twice(fractions: list[str]) -> None:
    whole, killed = a_cluster(), a_cluster()
    for cluster in (whole, killed):
        cluster.add(*(a_share(f"p{number}", fraction) for number, fraction in enumerate(fractions)))
    whole.settle()
    for most in (1, 2, 3, 1, 2):
        killed.round(most)
        killed.restart()
        killed.play_kubelet()
    killed.settle()
    assert sorted(killed.bound) == sorted(whole.bound)
    assert len(killed.reservations()) == len(whole.reservations())


@given(st.lists(st.tuples(st.sampled_from(FRACTIONS), st.integers(1, 2)), max_size=8), st.lists(st.integers(0, 5)))
def test_lost_reservations_alone_evict_no_pod(shares: list[tuple[str, int]], lost: list[int]) -> None:
    cluster = Cluster([a_gpu_node("n1", gpus=4)])
    cluster.add(
        *(a_share(f"p{number}", fraction, devices=devices) for number, (fraction, devices) in enumerate(shares))
    )
    cluster.settle()
    for number in lost:
        for reservation in cluster.reservations()[number : number + 1]:
            cluster.delete(reservation)
        cluster.round()
        cluster.play_kubelet()
    cluster.settle()
    assert not cluster.evicted
    assert_sound(cluster)
    reserved = {each.annotations[RESERVED_GPU] for each in cluster.reservations()}
    assert reserved == {gpu for name in cluster.bound for gpu in cluster.gpus_of(name).split(",")}
