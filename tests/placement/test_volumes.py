"""Pods get nodes where their volumes are, and none while no node would do."""

from typing import Any

import pytest

from plimsoll.model.cluster import Pod
from plimsoll.plan.demand import DemandPlan, DemandPlanner
from tests.builders import a_gpu_node, a_node_pool, a_snapshot, a_waiting_pod, an_environment
from tests.demand.plans import on_nodes, planned, refused, requests_of
from tests.placement.rules import HOST, ZONE, zones
from tests.placement.storage import a_storage_class, a_volume, a_volume_claim, in_zone
from tests.placement.test_pods_among_pods import POOL, a_host, new_zones


def a_pod(*claims: str, name: str = "p", **more: Any) -> Pod:
    return a_waiting_pod(name, gpu_fraction="0.5", claims=claims or ("models",), **more)


BOUND = a_volume_claim(volume="pv")


@pytest.mark.parametrize("driver", [ZONE, "topology.ebs.csi.aws.com/zone", "topology.gke.io/zone"])
def test_a_new_node_is_asked_for_where_the_volume_is(driver: str) -> None:
    plan = planned(POOL, BOUND, a_volume("pv", {driver: ["b"]}), a_pod())
    assert new_zones(plan) == ["b"]
    again = planned(POOL, BOUND, a_volume("pv", {driver: ["b"]}), a_pod(), requested=requests_of(plan.nodes))
    assert not again.nodes
    assert len(again.needed) == 1


def test_free_gpus_elsewhere_do_not_count() -> None:
    hosts = [a_host("n0", "a"), a_host("n1", "b")]
    assert on_nodes(planned(*hosts, BOUND, in_zone("pv", "b"), a_pod())) == {"uid-p": "n1"}
    assert new_zones(planned(POOL, hosts[0], BOUND, in_zone("pv", "b"), a_pod())) == ["b"]


def test_labels_of_a_volume_count_as_the_scheduler_reads_them() -> None:
    volume = a_volume("pv").model_copy(update={"labels": {ZONE: "b__c"}})
    hosts = [a_host("n0", "a"), a_host("n1", "c")]
    assert on_nodes(planned(*hosts, BOUND, volume, a_pod())) == {"uid-p": "n1"}


def test_a_volume_of_several_zones_leaves_the_choice() -> None:
    volume = a_volume("pv", {ZONE: ["b"]}, {ZONE: ["c"]})
    assert len(planned(POOL, BOUND, volume, a_pod()).nodes) == 1
    assert on_nodes(planned(POOL, a_host("n", "c"), BOUND, volume, a_pod())) == {"uid-p": "n"}


def test_a_claim_that_waits_is_asked_for_where_its_class_provisions() -> None:
    plan = planned(POOL, a_volume_claim(storage_class="fast"), a_storage_class("fast", "c"), a_pod())
    assert new_zones(plan) == ["c"]
    anywhere = planned(a_host("n", "a"), a_volume_claim(storage_class="fast"), a_storage_class(), a_pod())
    assert on_nodes(anywhere) == {"uid-p": "n"}
    default = a_storage_class("usual", "c", annotations={"storageclass.kubernetes.io/is-default-class": "true"})
    assert new_zones(planned(POOL, a_volume_claim(), default, a_pod())) == ["c"]


def test_a_claim_that_is_being_provisioned_stays_with_its_node() -> None:
    chosen = a_volume_claim(storage_class="fast", annotations={"volume.kubernetes.io/selected-node": "n1"})
    hosts = [a_host("n0", "a"), a_host("n1", "b")]
    assert on_nodes(planned(*hosts, chosen, a_storage_class(), a_pod())) == {"uid-p": "n1"}


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ([a_volume_claim("other", volume="pv")], "PersistentVolumeClaim 'models' does not exist"),
        ([a_volume_claim(volume="gone")], "not bound to the volume that it names"),
        ([a_volume_claim(storage_class="fast")], "StorageClass fast"),
        ([a_volume_claim(storage_class="now"), a_storage_class("now", mode="Immediate")], "not bound yet"),
        ([a_volume_claim()], "has no StorageClass"),
        ([a_volume_claim(storage_class="")], "has no StorageClass"),
        (
            [
                a_volume_claim(storage_class="local"),
                a_storage_class("local", provisioner="kubernetes.io/no-provisioner"),
            ],
            "local volume",
        ),
        ([a_volume_claim(volume="pv", deletionTimestamp="2026-01-01T00:00:00Z"), in_zone("pv", "a")], "being deleted"),
    ],
)
def test_what_no_node_would_help_is_refused_by_name(objects: list[Any], why: str) -> None:
    plan = planned(POOL, a_host("n"), *objects, a_pod())
    assert not plan.nodes
    assert not on_nodes(plan)
    assert why in refused(plan)["uid-p"]
    assert not any("models" in reason for demand in plan.demands for reason in demand.reasons), "names are the pod's"


def test_a_tenant_learns_and_buys_nothing_by_the_volume_of_another() -> None:
    """A claim may name any volume, and an old volume any claim of this name."""
    for volume in (
        in_zone("pv", "b", namespace="others"),
        in_zone("pv", "b", claim="theirs"),
        in_zone("pv", "b", uid="of-an-earlier-claim"),
        a_volume("pv", {ZONE: ["b"]}, claim="", namespace=""),
    ):
        plan = planned(POOL, a_volume_claim(volume="pv", uid="mine"), volume, a_pod())
        assert not plan.nodes
        (why,) = refused(plan).values()
        assert "not bound" in why
        assert "(b)" not in why


def test_a_volume_only_narrows_what_a_namespace_may_use() -> None:
    free = an_environment(access=[{"namespaces": ["team"], "nodePools": ["small"]}])
    pools = (POOL, a_node_pool("small", ["g6.xlarge"], requirements=[zones("a")]))
    plan = planned(*pools, BOUND, in_zone("pv", "b"), a_pod(), environment=free)
    assert not plan.nodes
    assert list(refused(plan)) == ["uid-p"]


def test_many_alternatives_are_refused_and_not_multiplied() -> None:
    names = [f"v{number}" for number in range(12)]
    claims = [a_volume_claim(name, volume=name) for name in names]
    volumes = [a_volume(name, {f"k{name}": ["x"]}, {f"l{name}": ["x"]}, claim=name) for name in names]
    plan = planned(a_host("n"), *claims, *volumes, a_pod(*names))
    assert "alternatives" in refused(plan)["uid-p"]


def test_ephemeral_volumes_are_provisioned_with_the_pod() -> None:
    template = {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}
    spec = {"volumes": [{"name": "cache", "ephemeral": template}]}
    pod = a_waiting_pod("p", gpu_fraction="0.5").model_copy(
        update={"mounted": Pod.read({"metadata": {"name": "p"}, "spec": spec}).mounted}
    )
    others = a_volume_claim("unrelated")
    assert new_zones(planned(POOL, others, a_storage_class("fast", "c"), pod)) == ["c"]
    made = (a_volume_claim("p-cache", volume="pv"), in_zone("pv", "b", claim="p-cache"))
    assert new_zones(planned(POOL, *made, a_storage_class("fast", "c"), pod)) == ["b"]


def test_whole_gpus_are_matched_and_kept_at_the_gate() -> None:
    node = a_gpu_node("n0", "NVIDIA L4", gpus=1, instance_type="g6.xlarge", more_labels={HOST: "n0", ZONE: "a"})
    whole = a_waiting_pod("whole", gpus=1, claims=["models"])
    share = a_waiting_pod("share", gpu_fraction="0.5")
    assert on_nodes(planned(node, BOUND, in_zone("pv", "b"), whole, share)) == {"uid-share": "n0"}
    plan = planned(node, a_volume_claim("other"), whole)
    assert [list(demand.kept_out) for demand in plan.demands] == [["uid-whole"]]


def test_the_next_round_follows_the_claim() -> None:
    planner = DemandPlanner()

    def zones_with(*objects: Any) -> list[str]:
        plan: DemandPlan = planner.plan(a_snapshot(POOL, *objects, *pods))
        return new_zones(plan)

    pods = [a_pod()]
    assert zones_with(a_volume_claim("other")) == []
    assert zones_with(BOUND, in_zone("pv", "b")) == ["b"]
    assert zones_with(BOUND, in_zone("pv", "c")) == ["c"]


def test_without_any_claim_nothing_is_known() -> None:
    assert len(planned(POOL, a_pod()).nodes) == 1


ONE_POD = a_volume_claim(volume="pv", mode="ReadWriteOncePod")


def test_one_pod_of_a_claim_for_one_pod_gets_a_place_at_a_time() -> None:
    hosts, volume = [a_host("n0"), a_host("n1")], a_volume("pv")
    pods = [a_pod(name="late"), a_pod(name="first", priority=1)]
    plan = planned(POOL, *hosts, ONE_POD, volume, *pods)
    assert set(on_nodes(plan)) == {"uid-first"}
    assert not plan.nodes
    assert "ReadWriteOncePod" in refused(plan)["uid-late"]
    assert "team/first gets it first" in refused(plan)["uid-late"]
    shared = a_volume_claim(volume="pv")
    assert set(on_nodes(planned(POOL, *hosts, shared, volume, *pods))) == {"uid-first", "uid-late"}


def test_a_running_pod_keeps_its_claim_for_itself() -> None:
    running = a_pod(name="running", node="n0", phase="Running")
    plan = planned(POOL, a_host("n0"), ONE_POD, a_volume("pv"), running, a_pod())
    assert not plan.nodes
    assert "team/running uses it" in refused(plan)["uid-p"]
    for why in (each for demand in plan.demands for each in demand.refused.values()):
        assert "running" not in why.without_names
    other = running.model_copy(update={"namespace": "other"})
    assert on_nodes(planned(POOL, a_host("n0"), ONE_POD, a_volume("pv"), other, a_pod())) == {"uid-p": "n0"}
    done = running.model_copy(update={"phase": "Succeeded"})
    assert on_nodes(planned(POOL, a_host("n0"), ONE_POD, a_volume("pv"), done, a_pod())) == {"uid-p": "n0"}


@pytest.mark.parametrize("selector", [{"zone": "nowhere"}, None], ids=["no such node", "no room"])
def test_a_pod_without_a_place_leaves_its_claim_to_others(selector: dict[str, str] | None) -> None:
    first = a_waiting_pod("first", gpu_fraction="0.9", claims=["models"], priority=1, selector=selector)
    there = a_waiting_pod("there", node="n0", gpu_fraction="0.3", phase="Running")
    plan = planned(a_host("n0"), there, ONE_POD, a_volume("pv", {HOST: ["n0"]}), first, a_pod())
    assert on_nodes(plan) == {"uid-p": "n0"}
    assert set(refused(plan)) == {"uid-first"}
