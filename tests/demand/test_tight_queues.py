"""Pods are checked one by one only in queues that would not admit all of them. The result is the same as checking every
pod."""

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.pods import PodShare, read_shares
from plimsoll.cluster.queues import NO_LOAD, Amount, QueueGate, QueueLoad, is_preemptible, priority_of
from plimsoll.plan.classes import Asked, Gate, refused_by_gate
from tests.builders import a_waiting_pod
from tests.demand.test_stability import a_queue

LEAVES = ("a", "b", "c", "d")


@st.composite
def pods(draw: st.DrawFn) -> dict[str, PodShare]:
    waiting = [
        a_waiting_pod(
            f"pod-{number:02}",
            queue=draw(st.sampled_from([*LEAVES, "lost"])),
            gpu_fraction=f"0.{draw(st.integers(1, 9))}",
            priority=draw(st.sampled_from([0, 50, 125])),
        )
        for number in range(draw(st.integers(0, 12)))
    ]
    return {each.pod.uid: each for each in read_shares(waiting).found}


@given(pods(), st.data())
def test_checking_only_tight_queues_gives_the_same_result(found: dict[str, PodShare], data: st.DataObject) -> None:
    limits = st.sampled_from([-1, 1, 2, 3])
    queues = [a_queue(name, "", data.draw(limits)) for name in ("left", "right")]
    queues += [a_queue(name, "left" if name in "ab" else "right", data.draw(limits)) for name in LEAVES]
    loads = {name: QueueLoad(Amount(data.draw(st.sampled_from([0, 500, 1500])))) for name in LEAVES}
    asked = {
        uid: Asked(
            each.pod.labels["kai.scheduler/queue"],
            Amount(each.share.milli or 0),
            is_preemptible(each.pod),
            priority_of(each.pod),
        )
        for uid, each in found.items()
    }
    sums: dict[str, QueueLoad] = {}
    for queue, amount, *_ in asked.values():
        sums[queue] = sums.get(queue, NO_LOAD) + QueueLoad(amount, amount)
    tight = QueueGate(queues, loads).tight(sums.items())
    some = {uid: each for uid, each in asked.items() if each[0] in tight}
    everything = refused_by_gate(Gate(QueueGate(queues, loads)), found, asked, ())
    assert {uid: str(why).partition(":")[0] for uid, why in everything.items()} == {
        uid: str(why).partition(":")[0]
        for uid, why in refused_by_gate(Gate(QueueGate(queues, loads)), found, some, ()).items()
    }
