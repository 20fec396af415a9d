"""NodeClaims are labelled with whom they were requested for, once, and nodes say it."""

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client

from plimsoll.cluster.ledger import gpu_ledger
from plimsoll.cluster.nodes import SEVERAL, NodeOwner, node_owners
from plimsoll.cost import Prices, cost_by_owner
from plimsoll.kube import Connection, ConnectionFailedError, RequestError
from plimsoll.labels import DEMAND, OWNER_NAMESPACE, OWNER_QUEUE
from plimsoll.model import Snapshot
from plimsoll.model.api import ClaimStage, DemandClaim, DemandPod, DemandReport, GPUDemandStatus
from plimsoll.model.karpenter import NodeClaim
from plimsoll.report import ClaimOwnerWriter, unlabelled_claims
from tests.builders import a_claim, a_gpu_node, a_snapshot, a_waiting_pod, a_workspace


def of_demand(name: str = "c", labels: dict[str, str] | None = None, **more: Any) -> NodeClaim:
    """A NodeClaim that Karpenter created from a NodePool."""
    return a_claim(name, **more).model_copy(update={"labels": {"karpenter.sh/nodepool": "l4", **(labels or {})}})


def report(name: str, *uids: str, claim: str = "c") -> DemandReport:
    status = GPUDemandStatus(
        pods=tuple(DemandPod(uid=uid, share="1 GPU") for uid in uids),
        node_claims=(DemandClaim(name=claim, stage=ClaimStage.LAUNCHING),),
    )
    return DemandReport(name=name, status=status)


def labels_of(snapshot: Snapshot, *reports: DemandReport) -> dict[str, dict[str, str]]:
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
