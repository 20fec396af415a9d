"""Workspaces at each step of provisioning, whose statuses show each reason of a condition."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from plimsoll.model import Snapshot
from plimsoll.model.api import WorkspaceStatus
from plimsoll.model.cluster import Workload
from plimsoll.model.karpenter import ClaimEvent, NodeClaim
from plimsoll.model.meta import Condition
from plimsoll.plan import validate
from plimsoll.plan.workspaces import WorkspaceNodes
from plimsoll.report import status_of
from tests.builders import NC24, a_claim, a_node, a_pod, a_snapshot, a_workload, a_workspace

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
LATE: Final = START + timedelta(hours=1)
STATIC: Final = {"karpenter.sh/nodepool": "ws"}


class Case(NamedTuple):
    snapshot: Snapshot
    now: datetime = START + timedelta(minutes=1)
    previous: WorkspaceStatus | None = None


def _workload(replicas: int, ready: int, kind: str = "StatefulSet") -> Workload:
    owned = {"plimsoll.dev/workspace": "ws", "plimsoll.dev/workspace-namespace": "default"}
    metadata = {"name": "ws", "namespace": "default", "labels": owned}
    manifest = {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {"replicas": replicas}}
    return a_workload({**manifest, "status": {"readyReplicas": ready}})


def _claim(name: str, labels: Mapping[str, str] | None = None, **steps: str) -> NodeClaim:
    """A NodeClaim with conditions such as Launched="True"; another value is Karpenter's reason for False."""
    conditions = tuple(
        Condition(
            type=step,
            status="True" if value == "True" else "False",
            reason="" if value == "True" else value,
            last_transition_time="2026-01-01T00:00:00Z",
        )
        for step, value in steps.items()
    )
    made = a_claim(name, a_workspace(uid="u"))
    return made.model_copy(update={"conditions": conditions, "labels": {**made.labels, **(labels or {})}})


def _byo(*objects: Any, **fields: Any) -> Snapshot:
    return a_snapshot(a_workspace(uid="u", **fields), *objects)


def _nap(*objects: Any, **fields: Any) -> Snapshot:
    return a_snapshot(a_workspace(uid="u", instance_type=NC24, selector={}, **fields), *objects, nap=True)


def _remembering(**provisioning: Any) -> WorkspaceStatus:
    return WorkspaceStatus.model_validate({"provisioning": provisioning})


_READY: Final[dict[str, Any]] = dict.fromkeys(("Launched", "Registered", "Initialized", "Ready"), "True")
_SPOT: Final = {"karpenter.sh/capacity-type": "spot"}
_LOST: Final = _remembering(pending=[{"name": "c", "step": "Launched"}])
_OUT_OF_STOCK: Final = ClaimEvent.read(
    {
        "metadata": {"name": "c.1", "namespace": "default"},
        "involvedObject": {"kind": "NodeClaim", "name": "c", "uid": "uid-c"},
        "reason": "InsufficientCapacityError",
        "message": "NodeClaim c event: no capacity for Standard_NC24ads_A100_v4 in westeurope",
    }
)

CASES: Final[Mapping[str, Case]] = {
    "BYO: ready": Case(_byo(a_node("n"), _workload(1, 1))),
    "BYO: no workload is declared": Case(_byo(a_node("n"), inference=False)),
    "BYO: refused": Case(_byo(a_node("n", pool="b"))),
    "BYO: refused, still serving": Case(_byo(a_node("n", pool="b"), _workload(2, 2))),
    "BYO: too little memory": Case(_byo(a_node("n"), per_replica=2, gpu_memory_gib=100)),
    "BYO: a node is missing, the workload runs": Case(
        _byo(a_node("m"), a_node("n"), a_pod("job", node="n", devices=1), _workload(1, 1), replicas=2)
    ),
    "BYO: pods are not ready": Case(_byo(a_node("n"), _workload(2, 1))),
    "NAP: ready": Case(_nap(_claim("c", **_READY).model_copy(update={"node_name": "n"}), a_node("n"), _workload(1, 1))),
    "NAP: an existing node is used": Case(
        a_snapshot(a_workspace(uid="u", instance_type=NC24), a_node("n", instance_type=NC24), nap=True)
    ),
    "NAP: a NodeClaim is missing": Case(_nap(_claim("c", **_READY), replicas=2)),
    "NAP: not launched": Case(_nap(_claim("c", Launched="QuotaExceeded"))),
    "NAP: not registered": Case(_nap(_claim("c", Launched="True", Registered="NodeNotFound"))),
    "NAP: not initialized": Case(
        _nap(_claim("c", Launched="True", Registered="True", Initialized="ResourceNotRegistered"))
    ),
    "NAP: not Ready": Case(_nap(_claim("c", **{**_READY, "Ready": "NodeNotReady"}))),
    "NAP: the node is not Ready": Case(
        _nap(_claim("c", **_READY).model_copy(update={"node_name": "n"}), a_node("n", ready=False))
    ),
    "NAP: being deleted": Case(_nap(_claim("c", **_READY), deleting=True)),
    "NAP: late": Case(_nap(_claim("c", Launched="QuotaExceeded")), LATE),
    "NAP: late, another try runs": Case(
        _nap(_claim("d", Launched="QuotaExceeded")),
        previous=_remembering(
            failures=1,
            tries=1,
            claim="c",
            reason="NodeClaimLate",
            message="NodeClaim c is late",
            lastFailure="2026-01-01T00:00:00Z",
        ),
    ),
    "NAP: late in a static NodePool": Case(
        _nap(_claim("c", STATIC, Launched="QuotaExceeded")),
        LATE,
        _remembering(
            failures=3,
            tries=3,
            claim="b",
            reason="NodeClaimLate",
            message="NodeClaim b is late",
            lastFailure="2026-01-01T00:59:00Z",
        ),
    ),
    "NAP: a spot node is interrupted": Case(
        _nap(
            _claim("c", _SPOT, **_READY).model_copy(
                update={"node_name": "n", "deletion_timestamp": "2026-01-01T00:00:30Z"}
            ),
            _claim("d"),
        )
    ),
    "NAP: lost": Case(_nap(), previous=_LOST),
    "NAP: lost for lack of capacity": Case(
        _nap().model_copy(update={"claim_events": (_OUT_OF_STOCK,)}), previous=_LOST
    ),
}
"""Snapshots by scenario; the messages are those of the Workspace `ws`."""


def messages() -> dict[str, dict[str, str]]:
    """By scenario and condition type: status, reason and message."""
    return {
        scenario: {each["type"]: f"{each['status']} {each['reason']}: {each['message']}" for each in conditions(case)}
        for scenario, case in CASES.items()
    }


def reasons() -> set[str]:
    return {each["reason"] for case in CASES.values() for each in conditions(case)}


def conditions(case: Case) -> list[dict[str, Any]]:
    """The conditions of the status that the controller would write."""
    (workspace,) = case.snapshot.workspaces
    verdicts = validate(case.snapshot)
    status = status_of(workspace, verdicts[0], WorkspaceNodes(case.snapshot, verdicts), case.now, case.previous)
    found: list[dict[str, Any]] = status["conditions"]
    return found
