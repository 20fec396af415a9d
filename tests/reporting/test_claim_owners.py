"""NodeClaims are labelled with whom they were requested for, and nodes say it."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from kubernetes import client

from plimsoll.cluster.ledger import gpu_ledger
from plimsoll.cluster.nodes import SEVERAL, NodeOwner, node_owners
from plimsoll.cost import Prices, cost_by_owner
from plimsoll.kube import Connection, ConnectionFailedError, RequestError
from plimsoll.labels import DEMAND, OWNER_NAMESPACE, OWNER_QUEUE, QUEUE
from plimsoll.model import Snapshot
from plimsoll.model.api import ClaimStage, DemandClaim, DemandPod, DemandReport, GPUDemandStatus
from plimsoll.model.cluster import Pod
from plimsoll.model.karpenter import NodeClaim
from plimsoll.report import ClaimOwnerWriter, request_owners, unlabelled_claims
from tests.builders import a_claim, a_gpu_node, a_snapshot, a_waiting_pod, a_workspace
from tests.capacity_requests.cluster import Cluster, answered, at, claim, demand_environment, pool, share_pod


def of_demand(name: str = "c", labels: dict[str, str] | None = None, **more: Any) -> NodeClaim:
    """A NodeClaim that Karpenter created from a NodePool."""
    return a_claim(name, **more).model_copy(update={"labels": {"karpenter.sh/nodepool": "l4", **(labels or {})}})


def report(name: str, *uids: str, claim: str = "c") -> DemandReport:
    status = GPUDemandStatus(
        pods=tuple(DemandPod(uid=uid, share="1 GPU") for uid in uids),
        node_claims=(DemandClaim(name=claim, stage=ClaimStage.LAUNCHING),),
    )
    return DemandReport(name=name, status=status)


def labels_of(snapshot: Snapshot, *reports: DemandReport) -> dict[str, Mapping[str, str | None]]:
    return {each.name: each.labels for each in unlabelled_claims(snapshot, reports)}


POD = a_waiting_pod("p", gpu_fraction="0.5", queue="a")


def test_a_claim_of_demand_gets_namespace_queue_and_demand_of_its_pods() -> None:
    snapshot = a_snapshot(of_demand(), POD)
    assert labels_of(snapshot, report("demand", POD.uid)) == {
        "c": {OWNER_NAMESPACE: POD.namespace, OWNER_QUEUE: "a", DEMAND: "demand"}
    }


def test_what_several_share_is_no_ones() -> None:
    other = POD.model_copy(update={"uid": "other", "name": "other", "namespace": "team-b"})
    snapshot = a_snapshot(of_demand(), POD, other)
    assert labels_of(snapshot, report("one", POD.uid), report("two", "other")) == {
        "c": {OWNER_NAMESPACE: SEVERAL, OWNER_QUEUE: "a", DEMAND: SEVERAL}
    }


@pytest.mark.parametrize(
    ("claim", "pods"),
    [
        (of_demand(labels={OWNER_NAMESPACE: "first"}), [POD]),
        (of_demand(deleting=True), [POD]),
        (of_demand("another"), [POD]),
        (of_demand(), []),
    ],
    ids=["labelled", "deleted", "not reported", "pods gone"],
)
def test_other_claims_stay_as_they_are(claim: NodeClaim, pods: list[Any]) -> None:
    assert labels_of(a_snapshot(claim, *pods), report("demand", POD.uid)) == {}


def test_a_claim_of_a_static_node_pool_gets_the_workspaces_namespace_and_queue() -> None:
    workspace = a_workspace("ws", namespace="team", queue="a")
    found = labels_of(a_snapshot(a_claim("c", workspace), workspace))
    assert found == {"c": {OWNER_NAMESPACE: "team", OWNER_QUEUE: "a"}}


class Claims(Connection):
    """An apiserver that answers with these errors first."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__(client.Configuration())
        self.errors = list(errors)
        self.bodies: list[Any] = []

    def request(self, method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        assert (method, path) == ("PATCH", "/apis/karpenter.sh/v1/nodeclaims/c")
        self.bodies.append(body)
        if self.errors:
            raise self.errors.pop(0)
        return {}


@pytest.fixture
def apiserver(request: pytest.FixtureRequest) -> Claims:
    return Claims(*getattr(request, "param", ()))


@pytest.fixture
def writer(apiserver: Claims) -> Iterator[ClaimOwnerWriter]:
    writer = ClaimOwnerWriter(apiserver)
    yield writer
    writer.close()


@pytest.mark.parametrize(
    ("apiserver", "requests"),
    [((), 1), ((RequestError(403, "Forbidden", "no"),), 1), ((ConnectionFailedError("away"),), 2)],
    ids=["written", "refused", "not reached"],
    indirect=["apiserver"],
)
def test_a_claim_is_labelled_once_under_its_uid(writer: ClaimOwnerWriter, apiserver: Claims, requests: int) -> None:
    """A refusal, as of rules of an older release, is not asked for in each round."""
    snapshot = a_snapshot(of_demand(), POD)
    for _ in range(3):
        writer.write(snapshot, [report("demand", POD.uid)])
        writer.flush()
    assert len(apiserver.bodies) == requests
    assert apiserver.bodies[0]["metadata"]["uid"] == "uid-c"


def test_the_owner_of_a_node_is_read_from_it_its_claim_and_its_workspace() -> None:
    byo = a_workspace("ws", namespace="team", worker_nodes=["byo"])
    snapshot = a_snapshot(
        a_gpu_node("own", more_labels={OWNER_NAMESPACE: "a", OWNER_QUEUE: "q", DEMAND: "d"}),
        of_demand(labels={OWNER_NAMESPACE: "b", DEMAND: "e"}, node="claimed"),
        a_gpu_node("claimed"),
        a_gpu_node("byo"),
        a_gpu_node("nobody's"),
        byo,
    )
    assert node_owners(snapshot) == {
        "own": NodeOwner("a", "q", demand="d"),
        "claimed": NodeOwner("b", demand="e"),
        "byo": NodeOwner("team", workspace="ws"),
    }


def test_costs_are_added_by_owner_and_those_of_nobody_are_said() -> None:
    nodes = [
        a_gpu_node(name, instance_type="t", more_labels={OWNER_NAMESPACE: owner} if owner else {})
        for name, owner in (("x", "a"), ("y", "a"), ("z", ""))
    ]
    snapshot = a_snapshot(*nodes, a_gpu_node("unpriced", instance_type="other"))
    found = cost_by_owner(gpu_ledger(snapshot).accounts(), node_owners(snapshot), Prices({"t": 2.0}))
    assert found == {("", ""): 2.0, ("a", ""): 4.0}


def requested(provisioner: str) -> tuple[Cluster, Snapshot, dict[str, Any]]:
    """A cluster whose demand was requested and then went, its snapshot before that, and the object that requested."""
    pods = [share_pod(f"share-{number}", "0.9").model_copy(update={"labels": {QUEUE: "a"}}) for number in range(9)]
    others = share_pod("other", "0.9").model_copy(update={"namespace": "team-b", "labels": {QUEUE: "b"}})
    cluster = Cluster(*pods, others, pool(), environment=demand_environment(provisioner))
    cluster.run_round(at(0))
    before = cluster.snapshot()
    (first, *_) = cluster.requested("Pod" if provisioner == "trigger-pod" else "CapacityBuffer")
    cluster.remove(Pod)
    cluster.run_round(at(1))
    assert not cluster.requests
    return cluster, before, first


def said_of(obj: dict[str, Any], claim: str = "gpu-late") -> list[Any]:
    """Karpenter's word on the object, or on the first virtual pod of a CapacityBuffer."""
    uid = obj["metadata"]["uid"] + ("-0" if obj["kind"] == "CapacityBuffer" else "")
    return answered(obj, "Nominated", f"Pod should schedule on: nodeclaim/{claim}", at(2), uid=uid)


@pytest.mark.parametrize("provisioner", ["trigger-pod", "capacity-buffer"])
def test_a_claim_that_comes_after_its_demand_went_says_whom_it_was_for(provisioner: str) -> None:
    cluster, before, request = requested(provisioner)
    seen = dict(request_owners(before, ()))
    late = claim("gpu-late", at(2))
    cluster.objects += [late, *said_of(request)]
    reports = cluster.run_round(at(3)).demands
    labels = request["metadata"]["labels"]
    (owned,) = unlabelled_claims(cluster.snapshot(), reports, seen)
    assert owned.labels[OWNER_NAMESPACE] == labels[OWNER_NAMESPACE] in ("team", "team-b", SEVERAL)
    assert owned.labels[OWNER_QUEUE] == labels[OWNER_QUEUE]
    assert owned.labels[DEMAND] in (*(each.name for each in reports), SEVERAL)


def test_nothing_is_guessed_of_a_claim_that_karpenter_says_nothing_of() -> None:
    cluster, before, request = requested("trigger-pod")
    cluster.objects += [claim("gpu-late", at(2)), *said_of(request, "gpu-another")]
    reports = cluster.run_round(at(3)).demands
    assert not list(unlabelled_claims(cluster.snapshot(), reports, dict(request_owners(before, ()))))


def test_what_karpenter_says_is_more_than_the_age_of_requests() -> None:
    """Also where labels were written before it said so. Of two that it says it of at first, both are the owners; later
    it says it of pods for which the NodeClaim has room."""

    def trigger(uid: str) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": uid, "namespace": "smart", "uid": uid}}

    seen = {name: {OWNER_NAMESPACE: name, DEMAND: f"of-{name}"} for name in ("one", "two", "later")}
    labelled = of_demand(labels={OWNER_NAMESPACE: "team", OWNER_QUEUE: "a", DEMAND: "demand"})
    said = [*said_of(trigger("one"), "c"), *answered(trigger("later"), "Nominated", "nodeclaim/c", at(9))]
    for events, owner in ((said, "one"), ([*said, *said_of(trigger("two"), "c")], SEVERAL)):
        snapshot = a_snapshot(labelled, POD).model_copy(update={"request_events": tuple(events)})
        (owned,) = unlabelled_claims(snapshot, [report("demand", POD.uid)], seen)
        named = SEVERAL if owner == SEVERAL else f"of-{owner}"
        assert owned.labels == {OWNER_NAMESPACE: owner, OWNER_QUEUE: None, DEMAND: named}


def test_labels_that_are_gone_are_written_again_from_what_is_known(writer: ClaimOwnerWriter, apiserver: Claims) -> None:
    """Also once the demand is gone: of an earlier process, the node knows them."""
    snapshot = a_snapshot(of_demand(), POD)
    writer.write(snapshot, [report("demand", POD.uid)])
    writer.flush()
    cut = of_demand().model_copy(update={"resource_version": "2"})
    writer.write(a_snapshot(cut), [])
    writer.flush()
    assert [body["metadata"]["labels"] for body in apiserver.bodies] == [
        {OWNER_NAMESPACE: POD.namespace, OWNER_QUEUE: "a", DEMAND: "demand"}
    ] * 2
    labels = {OWNER_NAMESPACE: "team", DEMAND: "d"}
    node = a_gpu_node("n", more_labels=labels)
    assert labels_of(a_snapshot(of_demand(node="n"), node)) == {"c": labels}
