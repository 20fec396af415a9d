"""One namespace with thousands of classes does not make plans slow, and its pods are refused once."""

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model.cluster import Pod, ResourceQuota
from plimsoll.model.meta import Placement
from plimsoll.plan.classes import RefusalReason
from plimsoll.plan.demand import DemandPlan, DemandPlanner
from plimsoll.plan.limits import NamespaceBudget
from plimsoll.plan.view import ClusterView
from tests.builders import a_gpu_node, a_node_pool, a_snapshot, a_waiting_pod, an_environment
from tests.calls import calls
from tests.demand.plans import on_new, planned

POOL = a_node_pool("pool", ("g6.xlarge",))


def odd(number: int, namespace: str = "hostile", **more: Any) -> Pod:
    """A pod of a class of its own."""
    tolerations = [{"key": f"key-{number}", "operator": "Exists"}]
    return a_waiting_pod(
        f"{namespace}-{number}", gpu_fraction="0.5", namespace=namespace, tolerations=tolerations, **more
    )


def limited(most: int) -> Any:
    return an_environment(demand={"classesPerNamespace": most})


def test_pods_of_too_many_classes_are_one_refusal_and_others_are_served() -> None:
    hostile = [odd(number) for number in range(20)]
    plan = planned(*hostile, odd(1, "team"), a_waiting_pod("own", gpu_fraction="0.5"), POOL, environment=limited(5))
    assert len(plan.demands) == 7, "five classes, that of `own`, and the rest"
    assert len(on_new(plan)) == 7
    [rest] = [each for each in plan.demands if each.name.startswith("left-out-")]
    assert len(rest.refused) == 15
    [reason] = rest.reasons
    assert "classesPerNamespace" in reason
    assert "hostile" not in reason, "others read it"
    assert {each.reason for each in rest.refused.values()} == {RefusalReason.LIMIT}


def test_a_plan_costs_as_much_as_its_limit() -> None:
    """Counted in calls: the time of a plan would differ between machines."""

    def cost(classes: int) -> int:
        snapshot = a_snapshot(*(odd(number) for number in range(classes)), POOL, environment=limited(5))
        return calls(lambda: DemandPlanner().plan(snapshot))

    few, many = cost(20), cost(400)
    assert many - few < 380 * 400, "each further pod is read once, and not planned"


def ruled(number: int, rules: int, namespace: str = "hostile") -> Pod:
    """A pod with rules about all pods, which no other has."""
    terms = [
        {
            "labelSelector": {
                "matchExpressions": [{"key": f"key-{key}", "operator": "NotIn", "values": [str(number)]}]
            },
            "topologyKey": "kubernetes.io/hostname",
            "namespaceSelector": {},
        }
        for key in range(rules)
    ]
    required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return a_waiting_pod(f"{namespace}-{number}", gpu_fraction="0.5", namespace=namespace, rules=required)


def test_pods_with_too_many_rules_about_others_are_refused_and_others_are_served() -> None:
    hostile = [ruled(number, 50) for number in range(200)]
    plan = planned(*hostile, *(ruled(number, 2, "team") for number in range(3)), POOL)
    found = {uid: why for demand in plan.demands for uid, why in demand.refused.items() if "rules" in str(why)}
    assert {why.reason for why in found.values()} == {RefusalReason.LIMIT}
    assert len(found) == 200 - 25, "25 times 50 rules, compared with 200 pods"
    assert not any(uid.startswith("uid-team") for uid in found)


def test_equal_rules_of_many_pods_count_once() -> None:
    alike = [ruled(0, 20).model_copy(update={"name": f"pod-{each}", "uid": f"uid-{each}"}) for each in range(300)]
    assert not any(
        "different rules" in str(why) for each in planned(*alike, POOL).demands for why in each.refused.values()
    )


def test_rules_about_other_pods_cost_as_much_as_their_limit() -> None:
    """300 pods with 50 rules each took a plan ten seconds."""

    def cost(pods: int) -> int:
        snapshot = a_snapshot(*(ruled(number, 50) for number in range(pods)), POOL)
        return calls(lambda: DemandPlanner().plan(snapshot))

    few, many = cost(100), cost(300)
    assert many < 3 * few


def test_rules_of_running_pods_cost_little_for_each_waiting_pod() -> None:
    """200 running pods with 50 anti-affinities each took a plan of 200 waiting ones 17 seconds."""
    node = a_gpu_node("n", gpus=8, more_labels={"kubernetes.io/hostname": "n"})
    bound = {"node_name": "n", "phase": "Running"}
    running = [ruled(number, 50).model_copy(update=bound) for number in range(20)]

    def cost(pods: int) -> int:
        waiting = [a_waiting_pod(f"pod-{each}", gpu_fraction="0.5") for each in range(pods)]
        snapshot = a_snapshot(*running, *waiting, node, POOL)
        return calls(lambda: DemandPlanner().plan(snapshot))

    few, many = cost(10), cost(60)
    assert many - few < 50 * 1_000, "each pod is not compared with each rule"


def test_pods_with_a_thousand_conditions_on_nodes_are_refused() -> None:
    """300 pods with 1,000 each took a plan five seconds, for each class that came or went."""

    def selecting(name: str, number: int) -> Pod:
        terms = [{"matchExpressions": [{"key": f"{name}-{key}", "operator": "DoesNotExist"}]} for key in range(number)]
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
        pod = a_waiting_pod(name, gpu_fraction="0.5", namespace="hostile")
        return pod.model_copy(update={"placement": Placement.read({"affinity": affinity})})

    plan = planned(selecting("few", 500), selecting("many", 1001), selecting("more", 1002), POOL)
    assert len(plan.demands) == 2, "what is refused is of one class"
    assert on_new(plan) == {"uid-few"}
    refused = {uid: why.reason for each in plan.demands for uid, why in each.refused.items()}
    assert refused == dict.fromkeys(("uid-many", "uid-more"), RefusalReason.UNREADABLE)


@given(
    steps=st.lists(
        st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 6), st.integers(0, 1)), max_size=10), max_size=4
    ),
    most=st.integers(1, 3),
)
def test_what_is_left_out_depends_on_the_last_snapshot_only(steps: list[list[tuple[str, int, int]]], most: int) -> None:
    environment, kept = limited(most), DemandPlanner()
    for step in [*steps, []]:
        pods = {(namespace, number): odd(number, namespace, priority=priority) for namespace, number, priority in step}
        found = kept.plan(a_snapshot(*pods.values(), POOL, environment=environment))
        shuffled = list(pods.values())
        random.Random(most).shuffle(shuffled)
        fresh = DemandPlanner().plan(a_snapshot(*shuffled, POOL, environment=environment))
        assert found == fresh
        for namespace in ("a", "b"):
            own = [each for each in found.demands if any(pod.pod.namespace == namespace for pod in each.pods.values())]
            assert len(own) <= most


def shut_out(*objects: Any, **more: Any) -> DemandPlan:
    access = [{"namespaces": ["hostile"], "gpus": 0}, {"namespaces": ["*"]}]
    snapshot = a_snapshot(*objects, POOL, environment=an_environment(access=access))
    return DemandPlanner().plan(snapshot, namespaces=NamespaceBudget(ClusterView(snapshot)), **more)


def test_a_namespace_that_may_have_nothing_is_one_refusal_whatever_it_asks_for() -> None:
    whole = a_waiting_pod("whole", gpus=1, namespace="hostile")
    unreadable = a_waiting_pod("unreadable", gpu_fraction="much", namespace="hostile")
    hostile = [*(odd(number) for number in range(20)), whole, unreadable]
    plan = shut_out(*hostile, odd(1, "team"))
    [rest, own] = sorted(plan.demands, key=lambda each: len(each.pods))
    assert rest.name.startswith("left-out-")
    assert own.on_new.keys() == {"uid-team-1"}
    assert rest.refused.keys() == {pod.uid for pod in hostile}
    assert len({id(why) for why in rest.refused.values()}) == 1
    [reason] = rest.reasons
    assert "lets namespace of the pods have 0 GPUs, 0 are in use" in reason
    assert len(rest.refused_with_event) == 10, "a flood of pods is none of events"


def test_a_namespace_that_has_all_that_it_may_have_waits_as_a_whole() -> None:
    quota = ResourceQuota.read(
        {"metadata": {"name": "q", "namespace": "hostile"}, "spec": {"hard": {"requests.nvidia.com/gpu": "1"}}}
    )
    node = a_gpu_node("n", gpus=4)
    bound = a_waiting_pod("bound", gpus=1, namespace="hostile", node="n", phase="Running")
    [rest] = shut_out(odd(1), quota, node, bound).demands
    assert rest.name.startswith("left-out-")
    [served] = planned(odd(1), quota, node).demands
    assert served.on_nodes


def test_a_flood_of_a_namespace_that_may_have_nothing_costs_no_plan() -> None:
    """Counted in calls: the time of a plan would differ between machines."""

    def cost(pods: int) -> int:
        planner, access = DemandPlanner(), [{"namespaces": ["hostile"], "gpus": 0}, {"namespaces": ["*"]}]

        def plan(*changed: Pod) -> None:
            snapshot = a_snapshot(*flood, *changed, environment=an_environment(access=access))
            limits = NamespaceBudget(ClusterView(snapshot))
            planner.plan(snapshot, namespaces=limits)

        flood = [odd(number) for number in range(pods)]
        plan()
        return calls(lambda: plan(odd(1, "team")))

    few, many = cost(20), cost(420)
    assert many - few < 400 * 10, "a round reads none of them again"


def test_a_pod_with_a_resource_in_each_of_its_containers_is_read_once() -> None:
    """60 pods with 400 containers each took a plan nine seconds, also where their namespace may have no GPUs."""

    def cost(containers: int) -> int:
        named = [{"name": f"c-{n}", "resources": {"requests": {f"example.com/{n}": "0"}}} for n in range(containers)]
        pod = a_waiting_pod("pod", gpu_fraction="0.5")
        snapshot = a_snapshot(pod.model_copy(update={"containers": (*pod.containers, *named)}), POOL)
        return calls(lambda: DemandPlanner().plan(snapshot))

    assert cost(200) - cost(100) < 2 * (cost(100) - cost(0))


def test_what_namespaces_use_is_read_once_in_a_round() -> None:
    """It was read for the verdicts and for the plan, and took a third of a round beside 2,000 pods of a tenant."""
    view = ClusterView(
        a_snapshot(*map(odd, range(200)), environment=an_environment(access=[{"namespaces": ["*"], "gpus": 9}]))
    )
    NamespaceBudget(view)
    assert calls(lambda: NamespaceBudget(view)) < 50
