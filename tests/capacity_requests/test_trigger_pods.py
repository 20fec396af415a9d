"""The life cycle of trigger pods."""

from typing import Any

import orjson
import pytest

from plimsoll import labels
from plimsoll.labels import SELECTED_NODE
from plimsoll.model import Plan, SignalReason
from plimsoll.model.cluster import Pod
from plimsoll.plan.requests import NodeRequest
from tests.builders import a_node_pool, placed
from tests.capacity_requests.cluster import (
    PRODUCT,
    TYPE,
    Cluster,
    at,
    claim,
    demand_environment,
    gated_pod,
    node,
    pool,
    share_pod,
)


def pods(count: int, fraction: str = "0.5") -> list[Pod]:
    return [share_pod(f"share-{number:03}", fraction) for number in range(count)]


def gated_pods(name: str) -> list[Pod]:
    return [gated_pod(f"{name}-{number}", "0.9") for number in range(8)]


def triggers(cluster: Cluster) -> list[dict[str, Any]]:
    return [manifest for (kind, _), manifest in sorted(cluster.requests.items()) if kind == "Pod"]


def test_a_burst_creates_one_trigger_pod_for_each_node_in_one_round() -> None:
    cluster = Cluster(pool(), *pods(33))
    plan = cluster.run_round(at(0))
    assert len(plan.creations) == 3, "33 halves are 17 GPUs, which are 3 nodes of 8"
    assert [signal.reason for signal in plan.signals] == [SignalReason.UNSCHEDULABLE] * 3
    assert cluster.phase() == "Scheduled"
    again = cluster.run_round(at(1))
    assert again.empty
    assert not again.signals


def test_the_requests_and_requirements_of_a_trigger_pod() -> None:
    cluster = Cluster(pool(), *pods(3))
    (creation,) = cluster.run_round(at(0)).creations
    manifest = creation.manifest
    metadata, spec = manifest["metadata"], manifest["spec"]
    assert metadata["name"].startswith("smart-gpu-scheduler-nvidia-a100")
    assert len(metadata["name"]) <= 63
    assert metadata["namespace"] == "plimsoll-triggers"
    assert metadata["labels"]["plimsoll.dev/component"] == "smart-scheduler"
    assert metadata["labels"]["plimsoll.dev/pool"] == "gpu"
    assert metadata["labels"]["plimsoll.dev/trigger-type"] == "gpu-scaling"
    assert orjson.loads(metadata["annotations"]["plimsoll.dev/original-request"]) == [
        {"pods": 3, "share": "0.5 of a GPU"}
    ]
    assert spec["nodeSelector"] == {labels.INSTANCE_TYPE: TYPE, labels.NODEPOOL: "gpu"}
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in spec["tolerations"]
    assert (spec["restartPolicy"], spec["activeDeadlineSeconds"]) == ("Never", 900)
    assert spec["schedulerName"] == "plimsoll-trigger"
    (container,) = spec["containers"]
    assert container["image"] == "registry.k8s.io/pause:3.9"
    assert container["resources"]["requests"] == {"nvidia.com/gpu": "8", "cpu": "3000m", "memory": "3072Mi"}
    assert container["resources"]["limits"] == container["resources"]["requests"]


def test_the_label_prefix_is_a_setting() -> None:
    environment = demand_environment(labelPrefix="tensor-fusion.ai")
    (creation,) = Cluster(pool(), *pods(1), environment=environment).run_round(at(0)).creations
    assert creation.manifest["metadata"]["labels"]["tensor-fusion.ai/component"] == "smart-scheduler"
    assert labels.DEMAND in creation.manifest["metadata"]["labels"], "the engine finds it by its own label"


def test_a_trigger_pod_is_withdrawn_when_its_gpus_are_allocatable_and_deleted_when_the_pods_are_bound() -> None:
    cluster = Cluster(pool(), *pods(3))
    cluster.run_round(at(0))
    cluster.objects.append(node("n1", at(30), gpus=0))
    assert not cluster.run_round(at(31)).signals, "the node shows no GPUs yet"
    cluster.remove(type(cluster.objects[-1]))
    cluster.objects.append(node("n1", at(30)))
    plan = cluster.run_round(at(40))
    assert [signal.reason for signal in plan.signals] == [SignalReason.CAPACITY_READY]
    assert plan.signals[0].message.endswith(" n1")
    assert plan.empty, "it stays until the pods are bound"
    assert cluster.phase() == "NodeReady"
    quiet = cluster.run_round(at(41))
    assert quiet.empty
    assert not quiet.signals
    cluster.remove(Pod)
    plan = cluster.run_round(at(42))
    assert len(plan.deletions) == 1
    assert cluster.phase() == "Completed"
    assert not cluster.requests


def test_a_restart_changes_nothing() -> None:
    """Everything is read from the cluster, so another controller has the same plan."""
    cluster = Cluster(pool(), *pods(17))
    cluster.run_round(at(0))
    cluster.objects.append(node("n1", at(30)))
    cluster.run_round(at(31))
    other = Cluster(*cluster.objects, environment=cluster.environment)
    other.requests, other.demands = cluster.requests, cluster.demands
    plan = other.plan(at(32))
    assert plan.empty
    assert not plan.signals


def test_a_missing_unschedulable_condition_is_written_again() -> None:
    cluster = Cluster(pool(), *pods(1))
    cluster.run_round(at(0))
    (trigger,) = triggers(cluster)
    trigger["status"] = {}
    plan = cluster.run_round(at(1))
    assert plan.empty
    assert [(signal.reason, signal.uid) for signal in plan.signals] == [(SignalReason.UNSCHEDULABLE, "uid-1")]


def test_later_pods_use_requested_nodes() -> None:
    cluster = Cluster(pool(), *pods(3))
    cluster.run_round(at(0))
    cluster.objects += [share_pod(f"later-{number}") for number in range(13)]
    assert cluster.run_round(at(1)).empty, "16 halves are the 8 GPUs of the node that is on its way"
    cluster.objects.append(share_pod("one-more"))
    assert len(cluster.run_round(at(2)).creations) == 1


def test_trigger_pods_are_deleted_with_their_demand() -> None:
    cluster = Cluster(pool(), *pods(33))
    cluster.run_round(at(0))
    cluster.remove(Pod)
    plan = cluster.run_round(at(1))
    assert len(plan.deletions) == 3
    assert cluster.phase() == "Completed"
    cluster.run_round(at(602))
    assert not cluster.demands, "it is over for as long as demand.retentionSeconds"


def test_an_expired_trigger_pod_is_replaced_with_the_next_attempt_up_to_the_retries() -> None:
    environment = demand_environment(deadlineSeconds=60, retries=1, retrySeconds=10, pauseSeconds=100)
    cluster = Cluster(pool(), *pods(1), environment=environment)
    cluster.run_round(at(0))
    plan = cluster.run_round(at(61))
    assert len(plan.deletions) == 1
    assert not plan.creations, "the type is not asked for again at once"
    assert cluster.phase() == "Expired"
    assert plan.next_deadline == at(71)
    (creation,) = cluster.run_round(at(72)).creations
    assert creation.manifest["metadata"]["annotations"]["plimsoll.dev/attempt"] == "2"
    cluster.run_round(at(133))
    assert cluster.phase() == "Failed"
    assert not cluster.run_round(at(150)).creations
    (creation,) = cluster.run_round(at(234)).creations
    assert creation.manifest["metadata"]["annotations"]["plimsoll.dev/attempt"] == "1"


def test_a_type_whose_node_never_shows_gpus_is_replaced_by_the_next() -> None:
    """Karpenter has no deadline for GPUs; Plimsoll has."""
    other = "p4de.24xlarge"
    cluster = Cluster(pool("gpu", TYPE), pool("more", other), *pods(1))
    (creation,) = cluster.run_round(at(0)).creations
    first = creation.manifest["spec"]["nodeSelector"][labels.INSTANCE_TYPE]
    assert first == TYPE, "the cheaper one"
    registered = {"type": "Registered", "status": "True", "lastTransitionTime": "2026-01-01T00:00:20Z"}
    launched = {"type": "Launched", "status": "True"}
    cluster.objects.append(claim("gpu-abc", at(2), conditions=[launched, registered]))
    assert cluster.run_round(at(100)).empty
    (demand,) = cluster.demands.values()
    assert [(each.name, each.stage) for each in demand.status.node_claims] == [("gpu-abc", "Initializing")]
    plan = cluster.run_round(at(700))
    (creation,) = plan.creations
    assert creation.manifest["spec"]["nodeSelector"][labels.INSTANCE_TYPE] == other
    assert len(plan.deletions) == 1
    (demand,) = cluster.demands.values()
    assert [(each.node_pool, each.instance_type) for each in demand.status.blocked] == [("gpu", TYPE)]


def test_a_trigger_pod_whose_node_has_registered_waits_for_the_gpus() -> None:
    """Longer than deadlineSeconds, until the deadline of the NodeClaim."""
    cluster = Cluster(pool(), *pods(1), environment=demand_environment(deadlineSeconds=60))
    assert cluster.run_round(at(0)).creations
    registered = {"type": "Registered", "status": "True", "lastTransitionTime": "2026-01-01T00:00:20Z"}
    launched = {"type": "Launched", "status": "True"}
    cluster.objects.append(claim("gpu-abc", at(2), conditions=[launched, registered], nodeName="n1"))
    for second in (61, 619):
        plan = cluster.run_round(at(second))
        assert (plan.empty, plan.next_deadline) == (True, at(620))
        status = cluster.status()
        assert (status.phase, status.failures, status.deadline) == ("Initializing", 0, "2026-01-01T00:10:20Z")
    assert cluster.run_round(at(621)).deletions
    assert cluster.status().failures == 1


def test_two_demands_share_a_trigger_pod_that_names_both() -> None:
    selecting = share_pod("other", nodeSelector={labels.INSTANCE_TYPE: TYPE})
    cluster = Cluster(pool(), *pods(1), selecting)
    (creation,) = cluster.run_round(at(0)).creations
    named = orjson.loads(creation.manifest["metadata"]["annotations"]["plimsoll.dev/demands"])
    assert sorted(named) == sorted(cluster.demands)
    assert creation.manifest["metadata"]["labels"][labels.DEMAND] == next(iter(named))
    assert {demand.status.phase for demand in cluster.demands.values()} == {"Scheduled"}
    assert cluster.run_round(at(1)).empty
    cluster.objects.remove(selecting)
    assert cluster.run_round(at(2)).empty, "the other one still needs it"
    cluster.remove(Pod)
    assert len(cluster.run_round(at(3)).deletions) == 1


def test_trigger_pods_of_one_demand_have_different_names() -> None:
    cluster = Cluster(pool(), *pods(33))
    plan = cluster.run_round(at(0))
    assert len({creation.key.name for creation in plan.creations}) == 3
    assert len({creation.owner.name for creation in plan.creations}) == 1


def test_a_trigger_pod_requires_only_labels_that_the_type_leaves_open() -> None:
    """It selects the type and the NodePool itself; the zone is required by the pods."""
    zone = {"topology.kubernetes.io/zone": "a"}
    selector = {**zone, "nvidia.com/gpu.product": PRODUCT, labels.NODEPOOL: "gpu", "kubernetes.io/os": "linux"}
    (creation,) = Cluster(pool(), share_pod("a", nodeSelector=selector)).run_round(at(0)).creations
    spec = creation.manifest["spec"]
    assert spec["nodeSelector"].items() >= {labels.INSTANCE_TYPE: TYPE, labels.NODEPOOL: "gpu", **zone}.items()
    assert "nvidia.com/gpu.product" not in spec["nodeSelector"], "no autoscaler knows it before the node is there"


def test_pods_of_different_zones_have_separate_trigger_pods() -> None:
    zones = [share_pod(zone, nodeSelector={"topology.kubernetes.io/zone": zone}) for zone in "ab"]
    cluster = Cluster(pool(), *zones, share_pod("any"))
    cluster.run_round(at(0))
    selected = [manifest["spec"]["nodeSelector"].get("topology.kubernetes.io/zone") for manifest in triggers(cluster)]
    assert sorted(selected, key=str) == [None, "a", "b"], "no node shows that these zones exist"
    assert cluster.run_round(at(1)).empty


def test_pods_with_our_labels_in_other_namespaces_are_ignored() -> None:
    cluster = Cluster(pool(), *pods(1))
    cluster.run_round(at(0))
    (trigger,) = triggers(cluster)
    trigger["metadata"]["namespace"] = "team"
    plan = cluster.plan(at(1))
    assert not plan.deletions


def test_without_a_provisioner_demand_is_reported_alone() -> None:
    cluster = Cluster(pool(), *pods(1), environment=demand_environment("none"))
    assert cluster.run_round(at(0)).empty
    (demand,) = cluster.demands.values()
    assert demand.status.phase == "Pending"
    assert "demand.provisioner" in demand.status.reasons[0]


def test_a_changed_provisioner_deletes_the_trigger_pods() -> None:
    cluster = Cluster(pool(), *pods(1))
    cluster.run_round(at(0))
    cluster.environment = demand_environment("none")
    assert len(cluster.run_round(at(1)).deletions) == 1


def test_a_node_older_than_the_request_does_not_serve_it() -> None:
    """Karpenter also creates nodes for other pods. Such nodes are supply, and reduce what is requested."""
    cluster = Cluster(pool(), claim("gpu-own", at(-5), nodeName="own"), *pods(17))
    cluster.run_round(at(0))
    assert len(triggers(cluster)) == 2, "what the claim leaves free is not known to be shared"
    cluster.objects.append(node("own", at(10)))
    plan = cluster.run_round(at(11))
    assert not [signal for signal in plan.signals if signal.reason is SignalReason.CAPACITY_READY]
    assert len(plan.deletions) == 1, "its GPUs are free, so one of the two nodes is not needed"


def test_a_product_is_written_as_a_valid_label_value() -> None:
    nothing_known = pool("gpu", "p4d.24xlarge")
    (creation,) = Cluster(nothing_known, *pods(1)).run_round(at(0)).creations
    for value in creation.manifest["metadata"]["labels"].values():
        assert labels.is_label_value(value), value


def test_a_node_whose_gpus_are_used_serves_no_request() -> None:
    """Two classes of pods need the same type: the node of the first class is full, so the second class still waits."""
    first = [share_pod(f"first-{number}", "0.9", nodeSelector={labels.NODEPOOL: "gpu"}) for number in range(8)]
    cluster = Cluster(pool(), *first, *pods(8, "0.9"))
    cluster.run_round(at(0))
    assert len(triggers(cluster)) == 2
    running = [each.model_copy(update={"phase": "Running", "conditions": ()}) for each in first]
    bound = [placed(each, "n1") for each in running]
    cluster.objects = [pool(), claim("gpu-1", at(2), nodeName="n1"), node("n1", at(30)), *bound, *pods(8, "0.9")]
    plan = cluster.run_round(at(31))
    assert [signal.reason for signal in plan.signals] == [SignalReason.WITHDRAWN], "the first one's"
    assert not plan.creations
    assert len(plan.deletions) == 1
    assert cluster.run_round(at(32)).empty


def test_pods_that_are_bound_one_after_the_other_cause_no_further_requests() -> None:
    """Two nodes hold 32 half GPUs, whichever pod is bound where."""
    waiting = pods(32)
    cluster = Cluster(pool(), *waiting)
    cluster.run_round(at(0))
    cluster.objects += [node("n1", at(30)), node("n2", at(30))]
    for number, each in enumerate(waiting):
        plan = cluster.run_round(at(31 + number))
        assert not plan.creations
        running = each.model_copy(update={"phase": "Running", "conditions": ()})
        cluster.objects[cluster.objects.index(each)] = placed(
            running, f"n{number % 2 + 1}", f"g{number % 2}-{number // 4}"
        )
    cluster.run_round(at(100))
    assert not cluster.requests


def test_nodes_that_register_in_another_order_serve_all_trigger_pods() -> None:
    cluster = Cluster(pool(), *(share_pod(f"first-{number}", "0.9") for number in range(8)))
    cluster.run_round(at(0))
    cluster.objects += [share_pod(f"later-{number}", "0.9") for number in range(8)]
    cluster.run_round(at(10))
    cluster.objects += [claim("gpu-1", at(1), nodeName="n1"), claim("gpu-2", at(11), nodeName="n2"), node("n2", at(20))]
    assert len(cluster.run_round(at(21)).signals) == 1
    cluster.objects.append(node("n1", at(30)))
    assert [signal.reason for signal in cluster.run_round(at(31)).signals] == [SignalReason.CAPACITY_READY]


def test_a_node_is_reserved_while_karpenter_would_count_it_for_another_trigger_pod() -> None:
    """Karpenter simulates unschedulable pods on idle nodes: with one such pod and one idle node it creates no
    NodeClaim."""
    first = gated_pods("first")
    cluster = Cluster(pool(), *first)
    cluster.run_round(at(0))
    cluster.objects += gated_pods("later")
    cluster.run_round(at(1))
    assert len(triggers(cluster)) == 2
    cluster.objects += [claim("gpu-1", at(2), nodeName="n1"), node("n1", at(4))]
    plan = cluster.run_round(at(5))
    assert not plan.signals, "both stay unschedulable"
    assert not plan.gate_removals, "nothing is let go to the node meanwhile"
    assert plan.next_deadline == at(30)
    cluster.objects.append(claim("gpu-2", at(6)))
    plan = cluster.run_round(at(7))
    assert [signal.reason for signal in plan.signals] == [SignalReason.CAPACITY_READY]
    assert len(plan.gate_removals) == 8


def test_a_node_is_not_reserved_if_a_pod_could_be_bound_to_it_or_for_long() -> None:
    for pod, time in ((share_pod("ready", "0.9"), 5), (gated_pod("held", "0.9"), 40)):
        first = gated_pods("first")
        cluster = Cluster(pool(), *first, pod)
        cluster.run_round(at(0))
        cluster.objects += [claim("gpu-1", at(2), nodeName="n1"), node("n1", at(4))]
        assert [signal.reason for signal in cluster.run_round(at(time)).signals] == [SignalReason.CAPACITY_READY]


def test_a_node_with_a_pod_is_not_reserved() -> None:
    """Its trigger pod would no longer fit the node, and Karpenter would launch another one."""
    held = gated_pods("held")
    cluster = Cluster(pool(), *held)
    cluster.run_round(at(0))
    cluster.objects += gated_pods("later")
    cluster.run_round(at(1))
    taker = share_pod("taker", "0.1", unschedulable=False)
    taker = taker.model_copy(update={"annotations": {**taker.annotations, SELECTED_NODE: f"n1/{taker.uid}"}})
    cluster.objects += [claim("gpu-1", at(2), nodeName="n1"), node("n1", at(4)), taker]
    assert SignalReason.CAPACITY_READY in [signal.reason for signal in cluster.run_round(at(5)).signals]


def test_an_unneeded_trigger_pod_is_withdrawn_before_the_update_that_deletes_it() -> None:
    """Karpenter checks pending pods every second, and an update takes longer."""
    cluster = Cluster(pool(), share_pod("a"))
    cluster.run_round(at(0))
    cluster.objects = [each for each in cluster.objects if not isinstance(each, Pod)]
    plan = cluster.plan(at(1))
    [signal], [deletion] = plan.signals, plan.deletions
    assert (signal.key, signal.uid, signal.reason) == (deletion.key, deletion.uid, SignalReason.WITHDRAWN)


@pytest.mark.parametrize("reason", ["Withdrawn", "Whatever"])
def test_the_unschedulable_condition_of_a_needed_trigger_pod_is_restored(reason: str) -> None:
    cluster = Cluster(pool(), share_pod("a"))
    cluster.run_round(at(0))
    condition = {"type": "PodScheduled", "status": "False", "reason": reason}
    for manifest in cluster.requests.values():
        manifest["status"] = {"conditions": [condition]}
    assert [signal.reason for signal in cluster.plan(at(1)).signals] == [SignalReason.UNSCHEDULABLE]


@pytest.mark.parametrize("provisioner", ["trigger-pod", "capacity-buffer", "provisioning-request"])
@pytest.mark.parametrize("first", ["kai-scheduler", "tensor-fusion-scheduler"])
def test_a_node_that_registered_serves_the_scheduler_that_it_was_requested_for(provisioner: str, first: str) -> None:
    """Until its pods use it, pods of another scheduler are not planned onto it: a node is requested for them."""
    cluster = Cluster(pool(), share_pod("first", schedulerName=first), environment=demand_environment(provisioner))
    assert _schedulers(cluster.run_round(at(0))) == [first]
    cluster.objects.append(node("n0", at(60)))
    assert cluster.run_round(at(60)).creations == ()
    (other,) = {"kai-scheduler", "tensor-fusion-scheduler"} - {first}
    cluster.objects.append(share_pod("other", schedulerName=other))
    assert _schedulers(cluster.run_round(at(61))) == [other]
    cluster.objects.append(node("n1", at(120)))
    for seconds in (120, 121):
        plan = cluster.run_round(at(seconds))
        assert (plan.creations, plan.deletions) == ((), ())


def _schedulers(plan: Plan) -> list[str]:
    """The schedulers for which the plan requests nodes."""
    made = [each.manifest["metadata"]["annotations"] for each in plan.creations if each.key.kind != "PodTemplate"]
    return [orjson.loads(each["plimsoll.dev/node"])["scheduler"] for each in made]


def test_requests_are_not_read_again_for_each_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = [share_pod(f"share-{number}", "0.9", nodeSelector={"team": str(number)}) for number in range(8)]
    of_teams = a_node_pool("gpu", [TYPE], requirements=[{"key": "team", "operator": "Exists"}])
    cluster = Cluster(of_teams, *shares)
    cluster.run_round(at(0))
    assert len(cluster.requested()) == len(cluster.demands) == 8
    read: list[str] = []
    requested_node = NodeRequest.requested_node

    def counted(self: NodeRequest, name: str, **more: Any) -> Any:
        read.append(name)
        return requested_node(self, name, **more)

    monkeypatch.setattr(NodeRequest, "requested_node", counted)
    assert cluster.run_round(at(1)).empty
    assert len(read) == 8
