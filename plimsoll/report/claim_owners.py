"""Labels NodeClaims with whom they were requested for, in background threads.

Karpenter creates some only after their request was withdrawn: it had begun to, while the pods went or found another
place. What the object of the request recorded is therefore kept for a while after it is gone.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import structlog

from plimsoll.cluster.nodes import owner_labels
from plimsoll.cluster.queues import queue_of
from plimsoll.kube import MERGE_PATCH, Connection, ConnectionFailedError, RequestError
from plimsoll.labels import DEMAND, OWNER_NAMESPACE, OWNER_QUEUE, WORKSPACE
from plimsoll.model import Snapshot
from plimsoll.model.api import DemandReport
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.owned import request_objects
from plimsoll.plan.requests import nominations, read_request
from plimsoll.report.latest_writer import LatestWriter
from plimsoll.report.statuses import TIMEOUT

WRITERS: Final = 4
KEPT: Final = 5000
"""Requests whose owners are kept."""
_KEYS: Final = (OWNER_NAMESPACE, OWNER_QUEUE, DEMAND)
Labels = Mapping[str, str]

log = structlog.get_logger(__name__)


class OwnedClaim(NamedTuple):
    name: str
    uid: str
    labels: Mapping[str, str | None]
    """None: it has the label, and must not."""
    version: str = ""
    """The resource version of the NodeClaim that lacks them."""


def request_owners(snapshot: Snapshot, known: Container[str]) -> Iterator[tuple[str, Labels]]:
    """The UIDs of the objects that request nodes, with the labels of the NodeClaims that Karpenter creates for them;
    without those that are known."""
    for obj in request_objects(snapshot):
        request = read_request(obj) if OWNER_NAMESPACE in obj.labels and obj.uid not in known else None
        if request is not None:
            labels = {key: obj.labels[key] for key in (OWNER_NAMESPACE, OWNER_QUEUE) if key in obj.labels}
            yield obj.uid, labels | owner_labels((), (), request.attempts)


def unlabelled_claims(
    snapshot: Snapshot,
    reports: Iterable[DemandReport],
    requested: Mapping[str, Labels] = MappingProxyType({}),
    written: Mapping[str, Mapping[str, str | None]] = MappingProxyType({}),
) -> Iterator[OwnedClaim]:
    """The NodeClaims without the labels of an owner that is known.

    Of demand, it is known by the request that Karpenter created the NodeClaim for (`requested`, by its UID), as far as
    it said so; else by the reports, what was `written` before (by the UID of the NodeClaim), or the node, to which
    Karpenter has copied the labels. Of Workspaces, by the labels of a NodePool that the controller created.
    """
    claims = [claim for claim in snapshot.node_claims if not claim.deleting]
    if not claims:
        return
    lacking = [claim for claim in claims if OWNER_NAMESPACE not in claim.labels]
    queues = {(workspace.namespace, workspace.name): workspace.spec.queue or "" for workspace in snapshot.workspaces}
    for claim in lacking:
        namespace, name, _ = claim.owner
        if name:
            yield _owned(claim, owner_labels([namespace], [queues.get((namespace, name), "")]))
    exact = _by_nomination(snapshot, requested)
    of_demand = {claim.name: claim for claim in lacking if WORKSPACE not in claim.labels and claim.name not in exact}
    reported = _by_reports(of_demand, snapshot, reports) if of_demand else {}
    nodes = {node.name: node for node in snapshot.nodes} if of_demand else {}
    for claim in claims:
        if WORKSPACE in claim.labels:
            continue
        if claim.name in exact:
            labels: Mapping[str, str | None] = exact[claim.name]
            labels = {key: labels.get(key) for key in _KEYS if key in labels or key in claim.labels}
        elif claim.name in of_demand:
            node = nodes.get(claim.node_name)
            on_node = {key: node.labels[key] for key in _KEYS if key in node.labels} if node is not None else {}
            labels = reported.get(claim.name) or written.get(claim.uid) or on_node
        else:
            continue
        if labels.get(OWNER_NAMESPACE) and any(claim.labels.get(key) != labels[key] for key in labels):
            yield _owned(claim, labels)


def _owned(claim: NodeClaim, labels: Mapping[str, str | None]) -> OwnedClaim:
    return OwnedClaim(claim.name, claim.uid, labels, claim.resource_version)


def _by_nomination(snapshot: Snapshot, requested: Mapping[str, Labels]) -> Mapping[str, Labels]:
    """By the name of the NodeClaim. The first requests count: Karpenter nominates later ones for a NodeClaim that it
    has."""
    found: dict[str, Labels] = {}
    for claim, times in nominations(snapshot.request_events).items() if requested else ():
        known = {uid: time for uid, time in times.items() if uid in requested}
        first = [requested[uid] for uid, time in known.items() if time == min(times.values())]
        if first:
            found[claim] = owner_labels(*([labels.get(key, "") for labels in first] for key in _KEYS))
    return found


def _by_reports(
    claims: Mapping[str, NodeClaim], snapshot: Snapshot, reports: Iterable[DemandReport]
) -> Mapping[str, Labels]:
    """By the name of the NodeClaim."""
    demands: dict[str, dict[str, frozenset[str]]] = {}
    """By NodeClaim: the UIDs of the pods of each demand."""
    for report in reports:
        for claim in report.status.node_claims if report.status is not None else ():
            if report.status is not None and claim.name in claims:
                demands.setdefault(claim.name, {})[report.name] = frozenset(pod.uid for pod in report.status.pods)
    if not demands:
        return {}
    uids = frozenset().union(*(uids for of_claim in demands.values() for uids in of_claim.values()))
    pods = {pod.uid: pod for pod in snapshot.pods if pod.uid in uids}
    environment, found = snapshot.environment.spec, {}
    for name, of_claim in demands.items():
        served = [pods[uid] for uids in of_claim.values() for uid in uids if uid in pods]
        labels = owner_labels(
            (pod.namespace for pod in served), (queue_of(pod, environment) for pod in served), of_claim
        )
        if OWNER_NAMESPACE in labels:
            found[name] = labels
    return found


class ClaimOwnerWriter(LatestWriter[OwnedClaim, bool]):
    """Karpenter copies the labels of a NodeClaim to its node when the node registers, so they are written as soon as it
    is known whom the NodeClaim is for, and again where they are gone; a failure is logged."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(WRITERS, "owners")
        self._connection = connection
        self._requested: dict[str, Labels] = {}
        """As `request_owners`, of those that are gone too; oldest first."""
        self._written: dict[str, OwnedClaim] = {}
        """By UID: what was written, or is refused, since the NodeClaim was as it was then."""

    def write(self, snapshot: Snapshot, reports: Iterable[DemandReport]) -> None:
        """Queues the labels that are missing. Returns at once."""
        self._requested |= dict(request_owners(snapshot, self._requested))
        for uid in list(self._requested)[:-KEPT]:
            del self._requested[uid]
        with self._lock:
            alive = {claim.uid for claim in snapshot.node_claims}
            self._written = {uid: item for uid, item in self._written.items() if uid in alive}
            known = {uid: item.labels for uid, item in self._written.items()}
            due = unlabelled_claims(snapshot, reports, self._requested, known)
            taken = {claim.name: claim for claim in due if self._written.get(claim.uid) != claim}
            self._written |= {claim.uid: claim for claim in taken.values()}
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
            self._written.pop(item.uid, None)
