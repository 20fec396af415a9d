"""The quota gate: whether KAI would admit more GPUs for a queue. Capacity is requested only if it would."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from plimsoll.model.kai import Queue
from plimsoll.plan.queues.load import QueueLoad
from plimsoll.plan.queues.tree import MILLI, QueueTree, Resource
from plimsoll.text import shortlist

OVER_LIMIT: Final = "OverLimit"
OVER_QUOTA: Final = "NonPreemptibleOverQuota"
NO_QUEUE: Final = "QueueDoesNotExist"
"""KAI's reasons on a PodGroup that it does not admit."""


class QueueGate:
    """Queues with their allocated GPUs; `loads` is by the queue that pods name.

    `admit` counts what it admits, so that several demands of one queue cannot exceed together what each may have alone.
    The caller keeps the order stable.
    """

    def __init__(self, queues: Iterable[Queue], loads: Mapping[str, QueueLoad] | None = None) -> None:
        self._tree = QueueTree(queues)
        self._loads: defaultdict[str, QueueLoad] = defaultdict(QueueLoad)
        self._unfit: dict[str, str] = {}
        for name, load in (loads or {}).items():
            self._add(name, load)

    def why_not(self, queue: str, gpu_milli: int, preemptible: bool) -> str:
        """Why the queue would not admit `gpu_milli` more thousandths of a GPU, starting with KAI's reason; empty if it
        would.

        The limit applies to the queue and to every ancestor; non-preemptible work must fit their quotas too. Pods
        without a queue are always admitted, and so are all pods if the cluster has no queues, because KAI is not
        installed then.
        """
        tree = self._tree
        if not queue or not tree:
            return ""
        unfit = self._unfit_why(queue)
        if unfit:
            return unfit
        for name in self._tree.lineage(queue):
            amounts = tree.amounts(name, Resource.GPU)
            load = self._loads[name]
            if amounts.limit is not None and load.allocated + gpu_milli > amounts.limit:
                return (
                    f"{OVER_LIMIT}: {_who(name, queue)} has {_gpus(load.allocated)} of its limit of "
                    f"{_gpus(amounts.limit)} GPUs in use, and {_gpus(gpu_milli)} more are requested: raise "
                    "spec.resources.gpu.limit, or wait until other work of it ends"
                )
            if not preemptible and amounts.quota is not None and load.non_preemptible + gpu_milli > amounts.quota:
                return (
                    f"{OVER_QUOTA}: {_who(name, queue)} has {_gpus(load.non_preemptible)} of its quota of "
                    f"{_gpus(amounts.quota)} GPUs in use by work that is not preemptible, and {_gpus(gpu_milli)} more "
                    "are requested: raise spec.resources.gpu.quota, or use a priority below 100"
                )
        return ""

    def admit(self, queue: str, gpu_milli: int, preemptible: bool) -> str:
        """As `why_not`; counts the GPUs as allocated if they are admitted."""
        why = self.why_not(queue, gpu_milli, preemptible)
        if not why:
            self._add(queue, QueueLoad(gpu_milli, 0 if preemptible else gpu_milli))
        return why

    def tight(self, requests: Iterable[tuple[str, QueueLoad]]) -> set[str]:
        """The queues that would not admit all of the requests (queue, load), in any order."""
        if not self._tree:
            return set()
        requests = tuple(requests)
        sums = defaultdict(QueueLoad, self._loads)
        for queue, load in requests:
            for name in self._tree.lineage(queue):
                sums[name] += load
        over = {name for name, load in sums.items() if self._passes(name, load)}
        queues = {queue for queue, _ in requests if queue}
        return {queue for queue in queues if self._unfit_why(queue) or over & set(self._tree.lineage(queue))}

    def _passes(self, name: str, load: QueueLoad) -> bool:
        """Whether the load exceeds the queue's limit or quota."""
        if name not in self._tree:
            return False
        amounts = self._tree.amounts(name, Resource.GPU)
        limit, quota = amounts.limit, amounts.quota
        return (limit is not None and load.allocated > limit) or (quota is not None and load.non_preemptible > quota)

    def _unfit_why(self, queue: str) -> str:
        unfit = self._unfit.get(queue)
        if unfit is None:
            unfit = self._unfit[queue] = self._why_unfit(queue)
        return unfit

    def _why_unfit(self, queue: str) -> str:
        """Why no work of the queue is scheduled at all; empty if it is."""
        tree = self._tree
        if queue not in tree:
            leaves = [name for name in tree if tree.is_leaf(name)]
            return (
                f"{NO_QUEUE}: Queue {queue} does not exist (known: {shortlist(leaves)}): use one of them, or create it"
            )
        broken = tree.broken_at(queue)
        if broken:
            return f"{NO_QUEUE}: Queue {queue} reaches no root, {broken}: KAI ignores it; correct its spec.parentQueue"
        if not tree.is_leaf(queue):
            children = shortlist(tree.children[queue])
            return f"{NO_QUEUE}: Queue {queue} has child queues ({children}) and schedules nothing itself: use a leaf"
        return ""

    def _add(self, queue: str, load: QueueLoad) -> None:
        for name in self._tree.lineage(queue):
            self._loads[name] += load


def _who(name: str, queue: str) -> str:
    return f"Queue {name}" if name == queue else f"Queue {name}, above {queue},"


def _gpus(milli: int) -> str:
    return f"{milli / MILLI:g}"
