"""Plans over time: what was asked for stays in use, nothing is asked for twice, and a restart asks for no more."""

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.model.kai import Queue
from plimsoll.plan.demand import DemandPlanner
from tests.demand.cluster_over_time import Cluster
from tests.demand.test_properties import nodes, pods


def a_queue(name: str, parent: str, limit: float) -> Queue:
    host = {"quota": -1, "limit": -1}
    resources = {"gpu": {"quota": -1, "limit": limit}, "cpu": host, "memory": host}
    return Queue.read({"metadata": {"name": name}, "spec": {"parentQueue": parent, "resources": resources}})


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    names = ("team-a", "default-queue")
    limit = draw(st.sampled_from([None, 2, 4]))
    queues = [a_queue("root", "", -1), *(a_queue(name, "root", limit) for name in names)] if limit else []
    return Cluster(draw(nodes()), draw(st.sampled_from([None, None, 4, 12])), queues, draw(st.booleans()))


def step(cluster: Cluster, data: st.DataObject, number: int) -> str:
    """One change; what it was."""
    what = data.draw(st.sampled_from(["more", "more", "gone", "bound", "came", "came", "failed", "again"]), "what")
    match what:
        case "more":
            for pod in data.draw(pods(5), "more"):
                uid = f"{number}-{pod.uid}"
                cluster.waiting[uid] = pod.model_copy(update={"uid": uid, "name": f"{number}-{pod.name}"})
        case "gone" if cluster.waiting:
            for uid in data.draw(st.sets(st.sampled_from(sorted(cluster.waiting)), max_size=3), "gone"):
                del cluster.waiting[uid]
        case "bound" if cluster.places():
            for uid, node in data.draw(st.sets(st.sampled_from(cluster.places()), max_size=3), "bound"):
                cluster.bind(uid, node)
        case "came" if cluster.promises:
            promise = data.draw(st.sampled_from(cluster.promises), "came")
            cluster.come(promise, data.draw(st.sampled_from(promise.instance_types), "as"))
        case "failed" if cluster.promises:
            cluster.fail(data.draw(st.sampled_from(cluster.promises), "failed"))
        case "again":
            cluster.blocked.clear()
    return what


@settings(max_examples=100, deadline=None)
@given(clusters(), st.data())
def test_nothing_is_asked_for_twice_and_a_restart_asks_for_nothing(cluster: Cluster, data: st.DataObject) -> None:
    for number in range(data.draw(st.integers(2, 6), "steps")):
        lacking = any(demand.refused for demand in cluster.found)
        before = {promise.name for promise in cluster.promises} | {*cluster.came}
        what = step(cluster, data, number)
        new = cluster.plan()
        if what in ("gone", "came") and not lacking:
            assert not new, what
        if what == "came":
            gone = before - {promise.name for promise in cluster.promises} - {*cluster.came}
            assert len(gone) <= 1, "what comes is used, and so is what still comes"
        if any(demand.refused for demand in cluster.found):
            return  # what is given back makes room for those that were refused
        assert settled(cluster)
        again = cluster.planned(cluster.planner)
        assert not [node for demand in again for node in demand.nodes]
        assert not cluster.unused(again)
        fresh = cluster.planned(DemandPlanner())
        assert not [node for demand in fresh for node in demand.nodes]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(clusters(), st.data())
def test_a_restart_asks_for_no_more_than_the_engine_that_lived_on(cluster: Cluster, data: st.DataObject) -> None:
    """Whatever has changed since the last plan. Where a limit keeps pods out, who of them is kept out is not told."""
    for number in range(data.draw(st.integers(2, 6), "steps")):
        step(cluster, data, number)
        anew = cluster.planned(DemandPlanner())
        asked = sum(promise.gpus for promise in cluster.plan())
        if any(demand.refused for demand in (*anew, *cluster.found)):
            return
        assert sum(node.gpus for demand in anew for node in demand.nodes) <= asked


def settled(cluster: Cluster) -> bool:
    """Whether nothing more is asked for while nothing changes, and soon nothing more is given back."""
    for _ in range(4):
        before = [*cluster.promises], {**cluster.came}
        if cluster.plan():
            return False
        if (cluster.promises, cluster.came) == before:
            return True
    return False
