"""Demand whose capacity fails, on real components, with every provisioner that Karpenter serves."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.webhooks import webhook_in_force
from tests.e2e.demand.environment import (
    API,
    CLAIM,
    EIGHT_GPUS,
    NAMESPACE,
    UNDER_WAY,
    add_pool,
    add_shares,
    asked,
    claims_of,
    declare_demand,
    demands,
    events_of,
    nodes_of,
    remove_added,
    remove_shares,
    sell_out,
    supply_again,
    triggers,
)

pytestmark = pytest.mark.e2e

OTHER = "p4de.24xlarge"
"""8 x A100 of 80 GiB."""

PROVISIONERS = pytest.mark.parametrize("provisioner", ["trigger-pod", "capacity-buffer"])


@pytest.fixture
def cluster(kube: Callable[..., Kube], demand_sandbox: Sandbox) -> Iterator[Kube]:
    cluster = kube(demand_sandbox)
    yield cluster
    supply_again(cluster)
    remove_added(cluster, "GPUDemand")


@PROVISIONERS
def test_a_type_that_fails_is_replaced_by_the_next(
    cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path, provisioner: str
) -> None:
    """For one demand the GPUs of the node never appear, for another the provider has no capacity. Nodes with GPUs are
    initialized well before the deadline, also where the machine is slow."""
    declare_demand(cluster, provisioner, gpu_deadline=12, retrySeconds=120)
    without = {"sandbox.plimsoll.dev/without-gpus": "true"}
    blind, sighted, scarce, plenty = (f"{kind}-{provisioner}" for kind in ("blind", "sighted", "scarce", "plenty"))
    add_pool(cluster, blind, EIGHT_GPUS, tier=blind, **without)
    add_pool(cluster, scarce, EIGHT_GPUS, tier=scarce)
    sell_out(cluster, scarce)
    with controller(demand_sandbox, tmp_path):
        add_shares(cluster, ["sold-out"], tier=scarce)
        add_shares(cluster, ["unlucky"], tier=blind)
        await_condition(lambda: claims_of(cluster, blind), 120)
        await_condition(lambda: events_of(cluster, scarce), 120, "Karpenter says that there is no capacity")
        add_pool(cluster, sighted, OTHER, tier=blind)
        add_pool(cluster, plenty, OTHER, tier=scarce)
        await_condition(lambda: nodes_of(cluster, sighted), 120, "a node of the other type")
        await_condition(lambda: nodes_of(cluster, plenty), 120, "a node of the type that there is")
        # What is requested next may have its node before that is reported.
        for pool, reported in ((blind, "is not Initialized"), (scarce, "sold-out")):
            (status,) = await_condition(partial(_replaced, cluster, pool), 120, f"{pool} is replaced")
            assert reported in status["blocked"][0]["reason"]
        await_condition(lambda: not claims_of(cluster, scarce), 120, "Karpenter deletes what it could not launch")
        assert {len(claims_of(cluster, pool)) for pool in (sighted, plenty)} == {1}
        remove_shares(cluster, ["unlucky", "sold-out"])
        await_condition(lambda: not asked(cluster, provisioner), 120, "nothing is left")


@PROVISIONERS
def test_requests_expire_and_deleted_demand_leaves_no_objects(
    cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path, provisioner: str
) -> None:
    declare_demand(cluster, provisioner, deadlineSeconds=8)
    slow, leaving, since = f"slow-{provisioner}", f"leaving-{provisioner}", cluster.revision()
    add_pool(cluster, slow, EIGHT_GPUS, delay="1h", tier=slow)
    with controller(demand_sandbox, tmp_path):
        add_shares(cluster, ["late"], tier=slow)
        await_condition(lambda: _attempts(cluster, provisioner) == {"1"}, 120, "it is asked for")
        await_condition(lambda: _attempts(cluster, provisioner) == {"2"}, 120, "another attempt")
        (status,) = await_condition(lambda: demands(cluster, "Failed"), 120, "not without end")
        assert "Expired" in _phases(cluster, since)
        assert status["failures"] == 2
        assert "in a row" in " ".join(status["reasons"])
        await_condition(lambda: not asked(cluster, provisioner), 120, "nothing asks any more")
        assert len(claims_of(cluster, slow)) == 1, "the second attempt waited for the node of the first"
        remove_shares(cluster, ["late"])
        await_condition(lambda: demands(cluster, "Completed"), 120)
        # And one that goes while its capacity is on its way.
        add_pool(cluster, leaving, EIGHT_GPUS, delay="1h", tier=leaving)
        add_shares(cluster, ["brief"], tier=leaving)
        await_condition(lambda: asked(cluster, provisioner), 120, "it is asked for")
        remove_shares(cluster, ["brief"])
        await_condition(lambda: len(demands(cluster, "Completed")) == 2, 120)
        await_condition(lambda: not asked(cluster, provisioner), 120, "nothing is left")


def test_a_node_claim_that_comes_after_its_request_says_whose_it_is(
    cluster: Kube, demand_sandbox: Sandbox, tmp_path: Path
) -> None:
    """An admission webhook holds the NodeClaim that Karpenter creates until the trigger pod is withdrawn, for the 30 s
    that the apiserver waits at most."""
    begun, withdrawn = Event(), Event()

    def hold(request: dict[str, Any]) -> dict[str, Any]:
        begun.set()
        withdrawn.wait(30)
        return {"allowed": True}

    of_pool = "object.metadata.labels[?'karpenter.sh/nodepool'].orValue('') == 'fleeting'"
    rules = [
        {"apiGroups": ["karpenter.sh"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["nodeclaims"]}
    ]
    fields = {
        "failurePolicy": "Ignore",
        "timeoutSeconds": 30,
        "matchConditions": [{"name": "of-the-pool", "expression": of_pool}],
    }
    declare_demand(cluster, "trigger-pod")
    add_pool(cluster, "fleeting", EIGHT_GPUS, tier="fleeting")
    with (
        webhook_in_force(demand_sandbox, cluster, hold, "held", rules, **fields),
        controller(demand_sandbox, tmp_path),
    ):
        add_shares(cluster, ["fleeting"], tier="fleeting")
        await_condition(begun.is_set, 120, "Karpenter creates a NodeClaim")
        remove_shares(cluster, ["fleeting"])
        await_condition(lambda: not triggers(cluster), 120, "the request is withdrawn")
        withdrawn.set()
        await_condition(lambda: _owners(cluster, "fleeting") == [NAMESPACE], 120, "the NodeClaim says whose it is")


def _owners(cluster: Kube, pool: str) -> list[str | None]:
    """For whom the NodeClaims of a NodePool are."""
    claims = cluster.list(*CLAIM, selector=f"karpenter.sh/nodepool={pool}")
    return [each["metadata"]["labels"].get("plimsoll.dev/owner-namespace") for each in claims]


def _attempts(cluster: Kube, provisioner: str) -> set[str]:
    return {each["metadata"]["annotations"]["plimsoll.dev/attempt"] for each in asked(cluster, provisioner)}


def _phases(cluster: Kube, since: int) -> list[str]:
    """The phases of all GPUDemands since the revision: one may have been for a few seconds only."""
    changes = cluster.changes_since(since, API, "GPUDemand", "", "")
    return [each["object"].get("status", {}).get("phase", "") for each in changes]


def _replaced(cluster: Kube, pool: str) -> list[dict[str, Any]]:
    """Statuses of demand that skips the NodePool's types after a NodeClaim failed, and has another one."""
    return [
        each
        for each in demands(cluster, *UNDER_WAY, "NodeReady")
        if _blocked(each) == [pool] and "Failed" in [claim["stage"] for claim in each.get("nodeClaims", ())]
    ]


def _blocked(status: dict[str, object]) -> list[str]:
    """NodePools of the instance types that are skipped."""
    blocked = status.get("blocked", ())
    assert isinstance(blocked, list | tuple)
    return [each["nodePool"] for each in blocked]
