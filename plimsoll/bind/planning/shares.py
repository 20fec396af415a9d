"""The steps for pending share pods: claim a place, reserve the GPUs, wait for their UUIDs, bind."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from plimsoll.bind.planning.claims import claimed
from plimsoll.bind.planning.groups import GroupKey, ReservedGroup, reserved_gpu
from plimsoll.bind.planning.placement import HostRoom, NoFit, SharePlacer, by_priority, exists, unsuitable_because
from plimsoll.bind.planning.steps import Bind, BindStep, Claim, Reserve, SetUnscheduled, Unclaim, UnscheduledReason
from plimsoll.cluster.ledger import GpuLedger
from plimsoll.cluster.pods import ShareRefusal, gpu_groups, read_request, selected_node
from plimsoll.cluster.pools import Strategies
from plimsoll.model.api import BinderSettings
from plimsoll.model.cluster import Pod, SharePod
from plimsoll.model.kai import GPUShare
from plimsoll.model.meta import condition_of
from plimsoll.packing import GPU_MILLI


class ShareBinding:
    """The steps for the pending pods of one moment. `late` are UIDs of reservations that took too long; `left` are UIDs
    of pods that cannot be bound."""

    def __init__(
        self,
        settings: BinderSettings,
        ledger: GpuLedger,
        groups: Mapping[GroupKey, ReservedGroup],
        *,
        paused: Collection[str],
        late: Collection[str],
        left: Collection[str] = (),
    ) -> None:
        self._settings = settings
        self._strategies = Strategies(settings.placement)
        self._ledger = ledger
        self._groups = groups
        self._paused = paused
        self._late = late
        self._left = left
        self._room = HostRoom(ledger, settings.reservation)
        self._reserving: set[GroupKey] = set()

    def steps(self, pods: Sequence[Pod]) -> Iterator[BindStep]:
        """The steps for claimed pods first, because they have a place already, then for the others by priority."""
        waiting = [pod for pod in pods if self._waits(pod)]
        for pod in by_priority([pod for pod in waiting if selected_node(pod)]):
            yield from self._of_claimed(pod, selected_node(pod))
        unclaimed = by_priority([pod for pod in waiting if not selected_node(pod) and pod.uid not in self._left])
        unjoinable = {key for key, group in self._groups.items() if not group.consistent or self._is_late(group)}
        placer = SharePlacer(self._ledger.accounts(), self._room, self._paused, unjoinable, self._strategies)
        for pod in unclaimed:
            yield from self._of_unclaimed(pod, placer)

    def _waits(self, pod: Pod) -> bool:
        return (
            pod.scheduler_name == self._settings.scheduler_name
            and not pod.node_name
            and not (pod.finished or pod.deleting or pod.scheduling_gates)
        )

    def _of_unclaimed(self, pod: Pod, placer: SharePlacer) -> Iterator[BindStep]:
        request = read_request(pod, self._settings.reservation.gpu_resource)
        if request.refusal is not None:
            refusal = ShareRefusal.of(pod, request.refusal)
            yield from _set_unscheduled(pod, UnscheduledReason.REFUSED, f"{refusal.message}: {refusal.hint}")
            return
        share = request.share
        obstacle = _not_a_share(share) or (pod.obstacle if isinstance(pod, SharePod) else "")
        if share is None or obstacle:
            yield from _set_unscheduled(pod, UnscheduledReason.REFUSED, obstacle)
            return
        assignment = placer.place(pod, share)
        if isinstance(assignment, NoFit):
            yield from _set_unscheduled(pod, UnscheduledReason.UNSCHEDULABLE, assignment.message)
            return
        self._ledger.put_pod(claimed(pod, assignment))
        account = self._ledger.account(assignment.node)
        if account is not None:
            placer.replace(account)
        yield Claim(pod, assignment)

    def _of_claimed(self, pod: Pod, node: str) -> Iterator[BindStep]:
        names = gpu_groups(pod)
        problem = self._void(pod, node, names)
        if problem:
            yield Unclaim(pod, problem)
            return
        gpus: list[str] = []
        steps: list[BindStep] = []
        for name in names:
            group = self._groups.get((node, name), ReservedGroup())
            live = [each for each in group.live if each.uid not in self._late]
            gpu = next((uuid for each in live if (uuid := reserved_gpu(each))), "")
            if gpu and group.consistent:
                gpus.append(gpu)
            elif live or group.bound or any(each.deleting for each in group.reservations):
                continue  # waiting for the reservation, or it is being replaced
            elif node in self._paused or group.reservations:
                yield Unclaim(pod, f"no GPU of {node} could be reserved")
                return
            elif (node, name) not in self._reserving:
                self._reserving.add((node, name))
                steps.append(Reserve(node, name, pod))
        if len(gpus) == len(names):
            yield Bind(pod, node, tuple(gpus), self._portion(pod, node))
            return
        yield from steps
        if pod.unschedulable:
            yield from _set_unscheduled(pod, UnscheduledReason.RESERVING, f"GPU on {node} is being reserved")

    def _void(self, pod: Pod, node: str, names: tuple[str, ...]) -> str:
        """Why the claim is invalid; empty if it is valid. Anyone may have written it."""
        if pod.uid in self._left:
            return "its GPU cannot be assigned"
        account = self._ledger.account(node)
        if account is None:
            return f"there is no node {node}"
        away = unsuitable_because(account, pod) or self._room.lacks(account, pod, counted=True)
        if away:
            return f"{node} is not available: {away}"
        request = read_request(pod, self._settings.reservation.gpu_resource)
        if request.refusal is not None:
            return ShareRefusal.of(pod, request.refusal).message
        share = request.share
        if share is None or share.whole or share.devices != len(names):
            return f"it is in {len(names)} GPU groups, and requests {share}"
        for name in names:
            group = account.group(name)
            if group is None or group.used_milli > GPU_MILLI:
                return f"the GPU of group {name} is full"
            if not exists(account, group):
                return f"{node} has no GPU left"
        return ""

    def _portion(self, pod: Pod, node: str) -> str:
        share = read_request(pod, self._settings.reservation.gpu_resource).share
        account = self._ledger.account(node)
        memory = account.memory_mib if account is not None else None
        if share is None or (share.memory_mib is not None and not memory):
            return ""
        return f"{float(share.milli_of(memory or 0)) / GPU_MILLI:g}"

    def _is_late(self, group: ReservedGroup) -> bool:
        return any(each.uid in self._late for each in group.reservations)


def _not_a_share(share: GPUShare | None) -> str:
    if share is None:
        return "it requests no share of a GPU, and this scheduler binds only such pods: set another schedulerName"
    if share.whole:
        return "it requests whole GPUs, which this scheduler does not bind: set another schedulerName"
    return ""


def _set_unscheduled(pod: Pod, reason: UnscheduledReason, message: str) -> Iterator[SetUnscheduled]:
    """Sets the condition, unless the pod has it already."""
    condition = condition_of(pod.conditions, "PodScheduled")
    if condition is None or (condition.status, condition.reason, condition.message) != ("False", reason, message):
        yield SetUnscheduled(pod, reason, message)
