"""A provider without capacity: Karpenter deletes the NodeClaim at once, and only an event remains."""

import pytest

from plimsoll import labels
from plimsoll.plan import plan
from plimsoll.plan.requests import named_after_pool
from tests.calls import calls
from tests.capacity_requests.cluster import (
    TYPE,
    Cluster,
    at,
    claim,
    demand_environment,
    node,
    pool,
    share_pod,
    sold_out,
)

OTHER = "p4de.24xlarge"
L4 = "g6.48xlarge"
"""Another product, 8 of them."""
RULES = {"retrySeconds": 60, "retries": 2, "pauseSeconds": 1000}


def a_cluster(*pools: object, count: int = 1, provisioner: str = "trigger-pod", **rules: int) -> Cluster:
    shares = [share_pod(f"share-{number:03}") for number in range(count)]
    return Cluster(*pools, *shares, environment=demand_environment(provisioner, **{**RULES, **rules}))


def requested_types(cluster: Cluster) -> list[str]:
    found: list[str] = []
    for manifest in cluster.requested():
        spec = manifest["spec"]
        terms = spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
        several = terms["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] if terms else []
        found += several or [spec["nodeSelector"][labels.INSTANCE_TYPE]]
    return sorted(found)


def blocked(cluster: Cluster) -> list[str]:
    return [each.instance_type for each in cluster.status().blocked]


def test_the_next_type_is_requested_after_karpenter_had_time_to_try_other_offerings() -> None:
    cluster = a_cluster(pool("gpu", TYPE), pool("more", OTHER))
    cluster.run_round(at(0))
    assert requested_types(cluster) == [TYPE]
    cluster.objects.append(sold_out("gpu-abcde", at(2)))
    early = cluster.run_round(at(3))
    assert early.empty, "another zone may have it"
    assert early.next_deadline == at(32)
    plan = cluster.run_round(at(32))
    assert requested_types(cluster) == [OTHER]
    assert len(plan.deletions) == 1
    assert "no capacity in any zone" in plan.deletions[0].reason
    assert blocked(cluster) == [TYPE]
    assert cluster.status().failures == 1
    (failed,) = cluster.status().node_claims
    assert (failed.name, failed.stage) == ("gpu-abcde", "Failed")
    assert cluster.run_round(at(33)).empty, "the event counts once"
    assert cluster.status().failures == 1


def test_the_next_type_may_have_another_gpu_product() -> None:
    cluster = a_cluster(pool("gpu", TYPE, L4))
    cluster.run_round(at(0))
    first, *_ = requested_types(cluster)
    cluster.gone_claims.append(claim("gpu-abcde", at(1), first))
    cluster.objects.append(sold_out("gpu-abcde", at(2)))
    cluster.run_round(at(40))
    assert requested_types(cluster) == [next(each for each in (TYPE, L4) if each != first)]


def test_another_node_claim_of_karpenter_for_the_request_is_awaited() -> None:
    cluster = a_cluster(pool("gpu", TYPE))
    cluster.run_round(at(0))
    cluster.objects += [sold_out("gpu-abcde", at(2)), claim("gpu-fghij", at(12))]
    assert cluster.run_round(at(40)).empty
    assert cluster.status().failures == 0


def test_only_the_instance_types_of_the_node_claim_are_skipped() -> None:
    cluster = a_cluster(pool("gpu", TYPE, OTHER))
    cluster.run_round(at(0))
    assert requested_types(cluster) == [TYPE, OTHER], "one trigger may become either"
    cluster.gone_claims.append(claim("gpu-abcde", at(1), TYPE))
    cluster.objects.append(sold_out("gpu-abcde", at(2)))
    cluster.run_round(at(40))
    assert blocked(cluster) == [TYPE]
    assert requested_types(cluster) == [OTHER]


def test_the_event_message_may_name_the_type_of_an_unobserved_node_claim() -> None:
    cluster = a_cluster(pool("gpu", TYPE, OTHER))
    cluster.run_round(at(0))
    cluster.objects.append(sold_out("gpu-abcde", at(2), f"we have no sufficient {OTHER} capacity."))
    cluster.run_round(at(40))
    assert blocked(cluster) == [OTHER]


@pytest.mark.parametrize(
    ("name", "pool_name", "made"),
    [
        ("gpu-abcde", "gpu", True),
        ("gpu-large-abcde", "gpu", False),
        ("gpu-large-abcde", "gpu-large", True),
        (("a" * 60 + "-")[:58] + "abcde", "a" * 60, True),
    ],
)
def test_the_node_pool_follows_from_the_name_of_a_node_claim(name: str, pool_name: str, made: bool) -> None:
    assert named_after_pool(name, pool_name) is made


def test_events_of_another_pool_or_from_before_the_request_are_ignored() -> None:
    cluster = a_cluster(pool("gpu", TYPE))
    cluster.objects.append(sold_out("gpu-older", at(-10)))
    cluster.run_round(at(0))
    cluster.objects.append(sold_out("gpu-large-abcde", at(2)))
    assert cluster.run_round(at(40)).empty
    assert not blocked(cluster)


def test_retries_are_limited() -> None:
    cluster = a_cluster(pool("gpu", TYPE), retries=1)
    cluster.run_round(at(0))
    cluster.objects.append(sold_out("gpu-first", at(2)))
    cluster.run_round(at(40))
    assert not cluster.requested()
    assert cluster.phase() == "Expired"
    cluster.run_round(at(101))
    (trigger,) = cluster.requested()
    assert trigger["metadata"]["annotations"]["plimsoll.dev/attempt"] == "2"
    cluster.objects.append(sold_out("gpu-secnd", at(103)))
    cluster.run_round(at(140))
    assert cluster.phase() == "Failed"
    assert not cluster.run_round(at(300)).creations


def test_a_restart_before_the_update_counts_no_failure_twice() -> None:
    """The status was written and the update was not, so the failed trigger pod still exists."""
    cluster = a_cluster(pool("gpu", TYPE), retries=1, retrySeconds=5)
    cluster.run_round(at(0))
    before = dict(cluster.requests)
    cluster.objects.append(sold_out("gpu-abcde", at(2)))
    cluster.run_round(at(40))
    cluster.requests = before
    cluster.run_round(at(60))
    assert cluster.status().failures == 1
    assert not cluster.requested()


def test_trigger_pods_with_existing_node_claims_are_awaited() -> None:
    cluster = a_cluster(pool("gpu", TYPE), pool("more", OTHER), count=33)
    cluster.run_round(at(0))
    assert requested_types(cluster) == [TYPE] * 3
    cluster.objects += [claim("gpu-aaaaa", at(1)), claim("gpu-bbbbb", at(1)), sold_out("gpu-ccccc", at(1))]
    cluster.run_round(at(40))
    assert requested_types(cluster) == [TYPE, TYPE, OTHER]
    assert cluster.run_round(at(41)).empty
    cluster.objects += [node("n1", at(60)), node("n2", at(60)), node("n3", at(60), instance_type=OTHER, of_pool="more")]
    cluster.run_round(at(61))
    assert cluster.phase() == "NodeReady"
    assert len(cluster.requested()) == 3
    assert cluster.status().failures == 0, "something came since"


def test_without_another_type_the_remaining_nodes_are_awaited() -> None:
    cluster = a_cluster(pool("gpu", TYPE), count=33)
    cluster.run_round(at(0))
    cluster.objects += [claim("gpu-aaaaa", at(1)), claim("gpu-bbbbb", at(1)), sold_out("gpu-ccccc", at(1))]
    cluster.run_round(at(40))
    assert requested_types(cluster) == [TYPE] * 2
    assert cluster.phase() == "Launching"
    assert "recently failed to launch" in " ".join(cluster.status().reasons)
    assert cluster.run_round(at(41)).empty


def test_a_late_node_claim_fails_one_trigger_pod_only() -> None:
    """Also if the NodeClaims of the other trigger pods are younger."""
    cluster = a_cluster(pool("gpu", TYPE), pool("more", OTHER), count=33)
    cluster.run_round(at(0))
    launched = {"type": "Launched", "status": "True"}
    cluster.objects.append(claim("gpu-aaaaa", at(1), TYPE))
    cluster.objects += [claim(f"gpu-{name}", at(2), conditions=[launched]) for name in ("bbbbb", "ccccc")]
    for second in (305, 306, 307):
        cluster.run_round(at(second))
        assert requested_types(cluster) == [TYPE, TYPE, OTHER]


def test_requests_without_a_node_claim_move_to_other_types_at_once() -> None:
    cluster = a_cluster(pool("gpu", TYPE), pool("more", OTHER), count=33)
    cluster.run_round(at(0))
    cluster.objects.append(sold_out("gpu-ccccc", at(1)))
    cluster.run_round(at(40))
    assert requested_types(cluster) == [OTHER] * 3
    assert cluster.status().failures == 1


def test_one_late_node_claim_gives_up_one_trigger_pod() -> None:
    """The others keep their NodeClaims, in this round and in the next."""
    cluster = a_cluster(pool("gpu", TYPE), pool("more", OTHER), count=33)
    cluster.run_round(at(0))
    launched = {"type": "Launched", "status": "True"}
    cluster.objects += [claim("gpu-aaaaa", at(1), conditions=[launched])]
    cluster.objects += [claim(f"gpu-{name}", at(2), conditions=[launched], nodeName=name) for name in ("n2", "n3")]
    cluster.run_round(at(800))
    assert cluster.status().failures == 0
    cluster.objects += [node("n2", at(2)), node("n3", at(2))]
    cluster.run_round(at(850))
    cluster.run_round(at(902))
    assert requested_types(cluster) == [TYPE, TYPE, OTHER]
    assert cluster.run_round(at(903)).empty


@pytest.mark.parametrize("provisioner", ["trigger-pod", "capacity-buffer"])
def test_the_next_type_is_requested_for_the_same_pods(provisioner: str) -> None:
    cluster = a_cluster(pool("gpu", TYPE), pool("more", OTHER), count=16, provisioner=provisioner)
    cluster.run_round(at(0))
    cluster.objects.append(sold_out("gpu-abcde", at(2)))
    cluster.run_round(at(40))
    cluster.objects.append(node("n1", at(60), instance_type=OTHER, of_pool="more"))
    cluster.run_round(at(61))
    assert cluster.phase() == "NodeReady"
    assert cluster.status().failures == 0


@pytest.mark.parametrize("claims", ["failed", "observed and failed", "of other NodePools"])
def test_the_cost_of_a_claim_does_not_depend_on_the_number_of_requests(claims: str) -> None:
    """A thousand without capacity, or ten thousand of other NodePools, took seconds of each round."""

    def cost(requests: int, number: int) -> int:
        cluster = a_cluster(pool("gpu", TYPE))
        cluster.run_round(at(0))
        ((kind, name), trigger), *_ = cluster.requests.items()
        for each in range(requests):
            metadata = {**trigger["metadata"], "name": f"{name}-{each}", "uid": f"uid-{each}"}
            cluster.requests[kind, metadata["name"]] = {**trigger, "metadata": metadata}
        several = [claim(f"gpu-{each:05}", at(1), of_pool="cpu" if "of" in claims else "gpu") for each in range(number)]
        if "failed" in claims:
            cluster.objects += [sold_out(each.name, at(2)) for each in several]
            cluster.gone_claims += several if "observed" in claims else []
        else:
            cluster.objects += several
        snapshot = cluster.snapshot()
        return calls(lambda: plan(snapshot, (), at(3)))

    def of_claims(requests: int) -> int:
        return cost(requests, 20) - cost(requests, 0)

    assert of_claims(40) - of_claims(10) < 20 * 30
