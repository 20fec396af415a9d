"""Plans over time: requests stay in use, nothing is requested twice, and a restart changes nothing."""

from collections.abc import Callable, Mapping

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model.cluster import Pod
from plimsoll.model.kai import POD_GROUP_NAME, PodGroup, Queue
from tests.demand.cluster_over_time import Cluster, group_of
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


WHAT: Mapping[str, tuple[int, Callable[[Cluster], object]]] = {
    "more": (2, lambda _: True),
    "gang": (2, lambda _: True),
    "gone": (2, lambda cluster: cluster.waiting),
    "bound": (2, lambda cluster: cluster.waiting and cluster.nodes),
    "gang bound": (4, lambda cluster: cluster.nodes and _waiting_gangs(cluster)),
    "came": (4, lambda cluster: cluster.requested),
    "claimed": (2, lambda cluster: cluster.requested),
    "failed": (2, lambda cluster: cluster.requested),
    "lost": (2, lambda cluster: cluster.bound),
    "again": (3, lambda cluster: cluster.blocked),
    "restarted": (1, lambda _: True),
}
"""How often each change is made, and where it can be."""


def _waiting_gangs(cluster: Cluster) -> list[str]:
    return sorted({group_of(pod) for pod in cluster.waiting.values()} & cluster.groups.keys())


def a_group(name: str, least: int) -> PodGroup:
    return PodGroup.read({"metadata": {"name": name, "namespace": "team"}, "spec": {"minMember": least}})


def _add(cluster: Cluster, pod: Pod, uid: str, group: str = "") -> None:
    annotations = {**pod.annotations, **({POD_GROUP_NAME: group} if group else {})}
    named = {"uid": uid, "name": uid.removeprefix("uid-"), "annotations": annotations}
    cluster.waiting[uid] = pod.model_copy(update=named)


def step(cluster: Cluster, data: st.DataObject, number: int) -> str:
    """Makes one change and returns its description."""
    able = [what for what, (often, possible) in WHAT.items() if possible(cluster) for _ in range(often)]
    what = data.draw(st.sampled_from(able), "what")

    def to(names: list[str]) -> str:
        return data.draw(st.sampled_from(names), "to")

    match what:
        case "more":
            for pod in data.draw(pods(3), "more"):
                _add(cluster, pod, f"{number}-{pod.uid}")
        case "gang":
            name = data.draw(st.sampled_from([f"gang-{number}", *sorted(cluster.groups)]), "gang")
            members = data.draw(pods(3), "members")
            for pod in members:
                _add(cluster, pod, f"{number}-gang-{pod.uid}", name)
            if name not in cluster.groups:
                # One more than exist is not awaited: it may request no GPU.
                cluster.groups[name] = a_group(name, data.draw(st.integers(2, max(2, len(members)) + 1), "least"))
        case "gone":
            for uid in data.draw(st.sets(st.sampled_from(sorted(cluster.waiting)), max_size=3), "gone"):
                del cluster.waiting[uid]
        case "bound":
            for uid in data.draw(st.sets(st.sampled_from(sorted(cluster.waiting)), max_size=3), "bound"):
                cluster.bind([uid], to)
        case "gang bound":
            name = data.draw(st.sampled_from(_waiting_gangs(cluster)), "gang bound")
            uids = sorted(uid for uid, pod in cluster.waiting.items() if group_of(pod) == name)
            first = data.draw(st.permutations(uids), "first")[: data.draw(st.integers(1, len(uids)), "most")]
            cluster.bind(first, to)
        case "came":
            came = data.draw(st.sampled_from(cluster.requested), "came")
            cluster.come(came, data.draw(st.sampled_from(came.instance_types), "as"))
        case "claimed":
            cluster.claim(data.draw(st.sampled_from(cluster.requested), "claimed"))
        case "failed":
            cluster.fail(data.draw(st.sampled_from(cluster.requested), "failed"))
        case "lost":
            cluster.lose(data.draw(st.sampled_from(sorted(cluster.nodes)), "lost"))
        case "restarted":
            cluster.restart()
        case "again":
            cluster.blocked.clear()
    return what


@given(clusters(), st.data())
def test_after_a_plan_is_applied_the_next_plan_requests_nothing(cluster: Cluster, data: st.DataObject) -> None:
    """At each step, while pods are bound anywhere they fit, gangs from their minimum, nodes register in any order or
    fail, and the engine is killed before it has made all requests. The first plan of each step, for which the caches
    are of another cluster, is compared with a new planner's."""
    for number in range(data.draw(st.integers(2, 8), "steps")):
        step(cluster, data, number)
        most = data.draw(st.none() | st.integers(0, 2), "requests before the engine is killed")
        wanted = cluster.plan(most)
        if most is not None:
            cluster.restart()
            rest = sum(node.gpus for node in wanted[most:])
            assert sum(node.gpus for node in cluster.plan(compared=False)) <= rest, "only what was not requested yet"
        new = cluster.plan(compared=False)
        assert not new, "once a request is there, another may be of no use, and is withdrawn; none is made"
        again = cluster.planned(compared=False)
        assert not again.nodes
        assert again.needed == {node.name for node in cluster.requested}


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
