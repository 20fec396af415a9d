"""Plans over time: requests stay in use, nothing is requested twice, and a restart changes nothing."""

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.model.kai import Queue
from tests.demand.cluster_over_time import Cluster
from tests.demand.plans import refused
from tests.demand.test_properties import nodes, pods


def a_queue(name: str, parent: str, limit: float) -> Queue:
    resources: dict[str, dict[str, float]] = {key: {"quota": -1, "limit": -1} for key in ("cpu", "memory")}
    resources["gpu"] = {"quota": -1, "limit": limit}
    return Queue.read({"metadata": {"name": name}, "spec": {"parentQueue": parent, "resources": resources}})


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    names = ("team-a", "default-queue")
    limit = draw(st.sampled_from([None, 2, 4]))
    queues = [a_queue("root", "", -1), *(a_queue(name, "root", limit) for name in names)] if limit else []
    return Cluster(draw(nodes()), draw(st.sampled_from([None, None, 4, 12])), queues, draw(st.booleans()))


WHAT = ("more", "more", "gone", "bound", "bound", "came", "came", "claimed", "failed", "again")


def step(cluster: Cluster, data: st.DataObject, number: int) -> str:
    """Makes one change and returns its description."""
    what = data.draw(st.sampled_from(WHAT), "what")
    match what:
        case "more":
            for pod in data.draw(pods(5), "more"):
                uid = f"{number}-{pod.uid}"
                cluster.waiting[uid] = pod.model_copy(update={"uid": uid, "name": f"{number}-{pod.name}"})
        case "gone" if cluster.waiting:
            for uid in data.draw(st.sets(st.sampled_from(sorted(cluster.waiting)), max_size=3), "gone"):
                del cluster.waiting[uid]
        case "bound" if cluster.waiting and cluster.nodes:
            anywhere = st.tuples(st.sampled_from(sorted(cluster.waiting)), st.sampled_from(sorted(cluster.nodes)))
            for uid, node in data.draw(st.lists(anywhere, max_size=3, unique_by=lambda each: each[0]), "bound"):
                cluster.bind(uid, node)
        case "came" if cluster.requested:
            came = data.draw(st.sampled_from(cluster.requested), "came")
            cluster.come(came, data.draw(st.sampled_from(came.instance_types), "as"))
        case "claimed" if cluster.requested:
            cluster.claim(data.draw(st.sampled_from(cluster.requested), "claimed"))
        case "failed" if cluster.requested:
            cluster.fail(data.draw(st.sampled_from(cluster.requested), "failed"))
        case "again":
            cluster.blocked.clear()
    return what


@settings(max_examples=25, deadline=None)
@given(clusters(), st.data())
def test_after_a_plan_is_applied_the_next_plan_requests_nothing(cluster: Cluster, data: st.DataObject) -> None:
    """At each step, while pods are bound anywhere they fit, and nodes register in any order or fail. `planned` compares
    with a new planner."""
    for number in range(data.draw(st.integers(2, 8), "steps")):
        step(cluster, data, number)
        cluster.plan()
        assert not cluster.plan(), "once a request is there, another may be of no use, and is withdrawn; none is made"
        again = cluster.planned()
        assert not again.nodes
        assert again.needed == {node.name for node in cluster.requested}


@settings(max_examples=25, deadline=None)
@given(clusters(), st.data())
def test_nothing_is_requested_while_nodes_register_and_pods_are_deleted(cluster: Cluster, data: st.DataObject) -> None:
    for number in range(data.draw(st.integers(2, 6), "steps")):
        lacking = bool(refused(cluster.found)) or any(each.awaiting for each in cluster.found.demands)
        before = {node.name for node in cluster.requested}
        what = step(cluster, data, number)
        new = cluster.plan()
        if what in ("gone", "came", "claimed") and not lacking:
            assert not new, what
        if what == "claimed":
            assert len(before - {node.name for node in cluster.requested}) <= 1, "what still comes is used"
