"""Limits: pods get the room under a limit by priority, then by age, whatever would pack best. The rest goes to pods
that need less."""

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.pools import Room
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import PodGroup
from plimsoll.plan.demand import DemandPlan
from tests.builders import a_gpu_node, a_node_pool, a_waiting_pod
from tests.demand.plans import on_new, on_nodes, planned, refused, requests_of, types

L4 = "g6.xlarge"
"""One GPU."""
L4_4 = "g6.12xlarge"


def a_pool(gpus: int, *types: str, **more: Any) -> Any:
    return a_node_pool("pool", types or (L4,), limits={"nvidia.com/gpu": gpus}, **more)


def share(name: str, fraction: str, *, priority: int = 0, age: int = 0, **more: Any) -> Pod:
    """A share; a pod with a greater `age` is older."""
    created = f"2026-01-01T00:{59 - age:02}:00Z"
    pod = a_waiting_pod(name, priority=priority, gpu_fraction=fraction, **more)
    return pod.model_copy(update={"creation_timestamp": created})


def served(plan: DemandPlan) -> set[str]:
    return {uid.removeprefix("uid-") for uid in on_new(plan)}


def test_higher_priority_goes_first() -> None:
    pods = [share(f"low-{n}", "0.9") for n in range(4)] + [share(f"high-{n}", "0.6", priority=10) for n in range(2)]
    found = planned(*pods, a_pool(2))
    assert served(found) == {"high-0", "high-1"}
    assert {"limits.nvidia.com/gpu of NodePool pool is 2" in why for why in refused(found).values()} == {True}


def test_of_equal_priority_the_oldest_goes_first() -> None:
    pods = [share(f"pod-{n}", "0.6", age=n) for n in range(5)]
    assert served(planned(*pods, a_pool(2))) == {"pod-3", "pod-4"}


def test_the_oldest_of_two_pods_gets_a_free_gpu() -> None:
    """A node has room for one of them, and no NodePool offers another."""
    pods = [share("old", "0.6", age=2), share("young", "0.7", age=1)]
    found = planned(*pods, a_gpu_node("node"))
    assert on_nodes(found) == {"uid-old": "node"}
    assert set(refused(found)) == {"uid-young"}


def test_a_gang_names_no_limit_that_leaves_room_for_it() -> None:
    """The free GPU that only its first pod can use goes to an older pod."""
    group = PodGroup.read({"metadata": {"name": "job", "namespace": "team"}, "spec": {"minMember": 2}})
    here = {"kubernetes.io/hostname": "node"}
    gang = [
        share("gang-0", "0.9", pod_group_name="job", age=5, selector=here),
        share("gang-1", "0.9", pod_group_name="job", age=5),
    ]
    node = a_gpu_node("node", more_labels=here)
    older = share("older", "0.9", age=9, selector=here)
    room = Room({"gpus": 50}, {"gpus": 50})
    found = planned(older, *gang, group, node, a_node_pool("pool", (L4,)), room=room)
    assert on_nodes(found) == {"uid-older": "node"}
    assert set(refused(found)) == {"uid-gang-0", "uid-gang-1"}
    assert not [why for why in refused(found).values() if "limits." in why]


def test_priority_counts_across_classes() -> None:
    """The class of the pod with the highest priority goes first, but its other pods do not."""
    pods = [share("a-high", "0.6", priority=10, queue="a")]
    pods += [share(f"a-low-{n}", "0.6", queue="a") for n in range(3)]
    pods += [share(f"b-{n}", "0.6", priority=5, queue="b") for n in range(2)]
    assert served(planned(*pods, a_pool(3))) == {"a-high", "b-0", "b-1"}


def test_remaining_room_goes_to_pods_that_need_less() -> None:
    pods = [share("first", "0.6", age=3), share("too-large", "0.5", age=2), share("small", "0.4", age=1)]
    assert served(planned(*pods, a_pool(1))) == {"first", "small"}


def test_the_limit_of_the_environment_is_divided_by_priority_too() -> None:
    pods = [share(f"low-{n}", "0.9") for n in range(4)] + [share("high", "0.2", priority=1)]
    room = Room({"gpus": 5}, {"gpus": 1})
    found = planned(*pods, a_node_pool("pool", (L4,)), room=room)
    assert served(found) == {"high"}
    assert "limits.gpus of the Environment is 5" in next(iter(refused(found).values()))


def test_node_pools_without_a_limit_serve_the_rest() -> None:
    pods = [share(f"pod-{n}", "0.9", age=n) for n in range(4)]
    assert len(served(planned(*pods, a_pool(1), a_node_pool("free", (L4,))))) == 4


def test_a_gang_gets_room_completely_or_not_at_all() -> None:
    jobset = {"jobset.sigs.k8s.io/jobset-name": "train"}
    gang = [share(f"gang-{n}", "0.9", priority=5, more_labels=jobset) for n in range(3)]
    found = planned(*gang, share("single", "0.9"), a_pool(2))
    assert served(found) == {"single"}
    assert served(planned(*gang, share("single", "0.9"), a_pool(3))) == {f"gang-{n}" for n in range(3)}


@given(
    sizes=st.lists(st.tuples(st.integers(1, 10), st.integers(0, 2)), min_size=1, max_size=12),
    gpus=st.integers(0, 6),
    queues=st.integers(1, 2),
)
def test_no_pod_goes_before_one_of_higher_priority_that_needs_no_more(
    sizes: list[tuple[int, int]], gpus: int, queues: int
) -> None:
    pods = [
        share(f"pod-{n:02}", f"{size / 10}", priority=priority, queue=f"q{n % queues}")
        for n, (size, priority) in enumerate(sizes)
    ]
    found = planned(*pods, a_pool(gpus, L4, L4_4))
    going = served(found)
    assert found.gpus <= gpus
    by_name = {f"pod-{n:02}": each for n, each in enumerate(sizes)}
    for name in by_name.keys() - going:
        size, priority = by_name[name]
        later = [each for each in going if by_name[each][1] < priority]
        assert not [each for each in later if by_name[each][0] >= size], (name, later)


def test_three_hundred_pods_are_ordered_by_priority() -> None:
    """With this many pods, room is decided pod by pod with best fit."""
    pods = [share(f"pod-{n:03}", "0.5", priority=n % 3, age=n % 50, queue=f"q{n % 4}") for n in range(300)]
    going = served(planned(*pods, a_pool(40)))
    assert len(going) == 80
    order = sorted(pods, key=lambda pod: (-pod.priority, pod.creation_timestamp, pod.uid))
    assert going == {pod.name for pod in order[:80]}


def test_an_elastic_gang_gets_its_minimum_before_others_and_the_rest_after_them() -> None:
    group = PodGroup.read({"metadata": {"name": "job", "namespace": "team"}, "spec": {"minMember": 2}})
    gang = [share(f"gang-{n}", "0.9", pod_group_name="job", age=9) for n in range(4)]
    pods = [*gang, *(share(f"single-{n}", "0.9", age=5) for n in range(2))]
    assert len([name for name in served(planned(*pods, group, a_pool(2))) if name.startswith("gang")]) == 2
    assert served(planned(*pods, group, a_pool(1))) <= {"single-0", "single-1"}, "one of the gang alone starts nothing"
    assert len(served(planned(*pods, group, a_pool(6)))) == 6


@given(
    gangs=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=4),
    gpus=st.integers(0, 8),
)
def test_no_gang_gets_a_part_of_its_minimum(gangs: list[tuple[int, int, int]], gpus: int) -> None:
    """Gangs of (pods, minimum, priority)."""
    objects: list[Any] = [a_pool(gpus)]
    for number, (count, least, priority) in enumerate(gangs):
        spec = {"minMember": least}
        objects.append(PodGroup.read({"metadata": {"name": f"g{number}", "namespace": "team"}, "spec": spec}))
        objects += [
            share(f"g{number}-{n}", "0.9", priority=priority, pod_group_name=f"g{number}") for n in range(count)
        ]
    plan = planned(*objects)
    assert plan.gpus <= gpus
    going = Counter(name.partition("-")[0] for name in served(plan))
    for number, (count, least, priority) in enumerate(gangs):
        placed = going[f"g{number}"]
        assert placed == 0 or placed >= min(count, least)  # members that do not exist are not awaited
        if not placed and count >= least:
            spare = gpus - plan.gpus
            less_urgent = sum(going[f"g{other}"] for other, (_, _, others) in enumerate(gangs) if others < priority)
            assert spare + less_urgent < least, "its least would have had room"


def test_the_room_of_a_withdrawn_request_is_available_at_once() -> None:
    """The gang had a node of one GPU; a member that needs two GPUs of one node joins it."""
    gang = {"jobset.sigs.k8s.io/jobset-name": "set"}
    first = a_waiting_pod("first", gpu_fraction="0.1", more_labels=gang)
    pool = a_pool(4, L4, L4_4)
    requested = requests_of(planned(first, pool).nodes)
    second = a_waiting_pod("second", gpu_fraction="0.1", gpu_fraction_num_devices="2", more_labels=gang)
    plan = planned(first, second, pool, requested=requested)
    assert (types(plan), plan.needed) == ([L4_4], frozenset())
    claimed = [replace(each, claimed=True) for each in requested]
    used = pool.model_copy(update={"used": {"nvidia.com/gpu": "1"}})  # by its NodeClaim
    assert not types(planned(first, second, used, requested=claimed)), "its node comes all the same"
