"""Labels NodeClaims with whom they were requested for, in background threads."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import structlog

from plimsoll.cluster.nodes import owner_labels
from plimsoll.cluster.queues import queue_of
from plimsoll.kube import MERGE_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.labels import OWNER_NAMESPACE, WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.api import DemandReport
from plimsoll.model.karpenter import NodeClaim
from plimsoll.report.latest_writer import LatestWriter
from plimsoll.report.statuses import TIMEOUT

WRITERS: Final = 4

log = structlog.get_logger(__name__)


class OwnedClaim(NamedTuple):
    name: str
    uid: str
    labels: dict[str, str]


def unlabelled_claims(snapshot: Snapshot, reports: Iterable[DemandReport]) -> Iterator[OwnedClaim]:
    """The NodeClaims without an owner's labels whose owner is known: Workspaces by the labels of a NodePool that the
    controller created, demand by the reports."""
    claims = {
        claim.name: claim
        for claim in snapshot.node_claims
        if not claim.deleting and OWNER_NAMESPACE not in claim.labels
    }
    if not claims:
        return
    queues = {(workspace.namespace, workspace.name): workspace.spec.queue or "" for workspace in snapshot.workspaces}
    for claim in claims.values():
        namespace, name, _ = claim.owner
        if name:
            yield OwnedClaim(claim.name, claim.uid, owner_labels([namespace], [queues.get((namespace, name), "")]))
    yield from _for_demand({name: each for name, each in claims.items() if WORKSPACE not in each.labels}, snapshot,
                           reports)  # fmt: skip


def _for_demand(
    claims: Mapping[str, NodeClaim], snapshot: Snapshot, reports: Iterable[DemandReport]
) -> Iterator[OwnedClaim]:
    demands: dict[str, dict[str, frozenset[str]]] = {}
    """By NodeClaim: the UIDs of the pods of each demand."""
    for report in reports:
        for claim in report.status.node_claims if report.status is not None else ():
            if report.status is not None and claim.name in claims:
                demands.setdefault(claim.name, {})[report.name] = frozenset(pod.uid for pod in report.status.pods)
    if not demands:
        return
    uids = frozenset().union(*(uids for of_claim in demands.values() for uids in of_claim.values()))
    pods = {pod.uid: pod for pod in snapshot.pods if pod.uid in uids}
    scheduler = snapshot.environment.spec.queue_scheduler
    for name, of_claim in demands.items():
        served = [pods[uid] for uids in of_claim.values() for uid in uids if uid in pods]
        labels = owner_labels((pod.namespace for pod in served), (queue_of(pod, scheduler) for pod in served), of_claim)
        if OWNER_NAMESPACE in labels:
            yield OwnedClaim(name, claims[name].uid, labels)


class ClaimOwnerWriter(LatestWriter[OwnedClaim, bool]):
    """Karpenter copies the labels of a NodeClaim to its node when the node registers, so they are written as soon as it
    is known whom the NodeClaim is for, once; a failure is logged."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(WRITERS, "owners")
        self._connection = connection
        self._written: set[str] = set()
        """UIDs of NodeClaims whose labels were written, or are refused."""

    def write(self, snapshot: Snapshot, reports: Iterable[DemandReport]) -> None:
        """Queues the labels that are missing. Returns at once."""
        unlabelled = {claim.name: claim for claim in unlabelled_claims(snapshot, reports)}
        with self._lock:
            self._written &= {claim.uid for claim in snapshot.node_claims}
            taken = {name: claim for name, claim in unlabelled.items() if claim.uid not in self._written}
            self._written |= {claim.uid for claim in taken.values()}
            self._queue(taken)

    def _write(self, item: OwnedClaim) -> bool:
        """Returns whether it is settled."""
        # The UID is a condition: another NodeClaim of that name has another owner.
        body = {"metadata": {"uid": item.uid, "labels": item.labels}}
        path = f"/apis/karpenter.sh/v1/nodeclaims/{item.name}"
        try:
            self._connection.request("PATCH", path, body, content_type=MERGE_PATCH, timeout=TIMEOUT)
        except RequestError as error:
            if error.code != 404:
                log.warning("cannot label NodeClaim", node_claim=item.name, error=error.message)
        except ConnectionFailedError as error:
            log.warning("cannot label NodeClaim", node_claim=item.name, error=error.message)
            return False
        return True

    def _wrote(self, key: str, item: OwnedClaim, result: bool) -> None:
        if not result:
            self._written.discard(item.uid)
