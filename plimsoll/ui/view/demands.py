"""Rows of demands: what pods request, why capacity is missing, and the lower bound of GPUs."""

from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.cluster.queues import queue_of
from plimsoll.labels import GPU_PRODUCT
from plimsoll.model import Plan, Snapshot
from plimsoll.model.api import EnvironmentSpec, GPUDemandStatus
from plimsoll.model.cluster import Pod
from plimsoll.plan.owned import request_objects
from plimsoll.plan.requests import NodeRequest
from plimsoll.text import counted, shortlist
from plimsoll.ui.view.filter import Filter


@dataclass(frozen=True, slots=True)
class WaitingPod:
    namespace: str
    name: str
    queue: str
    """Empty without one."""
    share: str
    since: str


@dataclass(frozen=True, slots=True)
class DemandRow:
    """One GPUDemand, with the status that the next Plan would write."""

    name: str
    phase: str
    since: str
    pods: int
    shares: tuple[tuple[str, int], ...]
    """(request, number of pods), most pods first, of the listed pods."""
    waiting: tuple[WaitingPod, ...]
    """Its pods that exist in the cluster, oldest first."""
    types: tuple[str, ...]
    """Instance types that are requested for it, sorted."""
    products: tuple[str, ...]
    """GPU products that are requested for it, or that its pods select, sorted."""
    gpus: int
    """New GPUs."""
    least: int
    """Lower bound of the number of new GPUs."""
    reasons: tuple[str, ...]
    objects: tuple[str, ...]
    claims: tuple[tuple[str, str, str], ...]
    """(name, stage, message) of the NodeClaims that an autoscaler created for it."""
    deadline: str
    failures: int
    blocked: tuple[str, ...]
    """Instance types that are skipped for now."""

    @property
    def gap(self) -> int:
        """GPUs above the lower bound."""
        return max(0, self.gpus - self.least)

    @property
    def title(self) -> str:
        """What it serves: who asks, for what, on which GPUs. Such as `research: 3 x 0.5 of a GPU on NVIDIA-L4`."""
        who = shortlist(self.queues or sorted({each.namespace for each in self.waiting}), 2)
        what = shortlist([f"{pods} x {share}" for share, pods in self.shares], 2) or counted(self.pods, "pod")
        where = f" on {shortlist(self.products, 2)}" if self.products else ""
        return f"{f'{who}: ' if who else ''}{what}{where}"

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(sorted({each.queue for each in self.waiting} - {""}))


def demand_rows(snapshot: Snapshot, plan: Plan, wanted: Filter) -> tuple[DemandRow, ...]:
    """By name; the Plan's reports take precedence over the statuses in the cluster."""
    statuses = {each.name: each.status for each in snapshot.gpu_demands}
    for report in plan.demands:
        if report.status is None:
            statuses.pop(report.name, None)
        else:
            statuses[report.name] = report.status
    pods = {pod.uid: pod for pod in snapshot.pods}
    requests = _requests(snapshot, plan)
    environment = snapshot.environment.spec
    rows = (_row(name, status, pods, requests, environment) for name, status in sorted(statuses.items()))
    return tuple(row for row in rows if _shown(row, wanted))


def _shown(row: DemandRow, wanted: Filter) -> bool:
    namespaces = {each.namespace for each in row.waiting}
    names = (f"{each.namespace}/{each.name}" for each in row.waiting)
    return wanted.matches(namespaces=namespaces, queues=row.queues, types=row.types) and wanted.matches_text(
        row.name, row.phase, *row.queues, *row.types, *row.reasons, *names
    )


def _requests(snapshot: Snapshot, plan: Plan) -> dict[tuple[str, str], NodeRequest]:
    """What the objects of the cluster and of the Plan request, by kind and name."""
    found = [(type(each).__name__, each.name, each.annotations) for each in request_objects(snapshot)]
    found += [
        (each.key.kind, each.key.name, each.manifest["metadata"].get("annotations") or {}) for each in plan.creations
    ]
    read = ((kind, name, NodeRequest.from_annotations(annotations)) for kind, name, annotations in found)
    return {(kind, name): request for kind, name, request in read if request is not None}


def _row(
    name: str,
    status: GPUDemandStatus,
    pods: Mapping[str, Pod],
    requests: Mapping[tuple[str, str], NodeRequest],
    environment: EnvironmentSpec,
) -> DemandRow:
    waiting = [
        WaitingPod(pod.namespace, pod.name, queue_of(pod, environment), each.share, pod.creation_timestamp)
        for each in status.pods
        if (pod := pods.get(each.uid)) is not None
    ]
    asked = [requests[key] for each in status.objects if (key := (each.kind, each.name)) in requests]
    shares: dict[str, int] = {}
    for asking in status.pods:
        shares[asking.share] = shares.get(asking.share, 0) + 1
    return DemandRow(
        name=name,
        phase=status.phase.value,
        since=status.since,
        pods=status.pod_count,
        shares=tuple(sorted(shares.items(), key=lambda each: (-each[1], each[0]))),
        waiting=tuple(sorted(waiting, key=lambda each: (each.since, each.namespace, each.name))),
        types=tuple(sorted({each for request in asked for each in request.instance_types})),
        products=tuple(sorted(({request.kind for request in asked} or _selected(status, pods)) - {""})),
        gpus=status.gpus,
        least=status.least_gpus,
        reasons=status.reasons,
        objects=tuple(
            f"{each.kind} {f'{each.namespace}/' if each.namespace else ''}{each.name}" for each in status.objects
        ),
        claims=tuple((each.name, each.stage.value, each.message) for each in status.node_claims),
        deadline=status.deadline,
        failures=status.failures,
        blocked=tuple(
            f"{each.instance_type} until {each.until}" + (f": {each.reason}" if each.reason else "")
            for each in status.blocked
        ),
    )


def _selected(status: GPUDemandStatus, pods: Mapping[str, Pod]) -> set[str]:
    """GPU products that its pods name in their node selectors."""
    found = (pods[each.uid] for each in status.pods if each.uid in pods)
    return {value for pod in found for key, value in pod.placement.node_selector if key == GPU_PRODUCT}
