"""The quota gate: whether KAI would admit more work of a queue. Capacity is requested only if it would."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from plimsoll.cluster.queues.amount import MILLI, Amount, Resource, shown
from plimsoll.cluster.queues.load import QueueLoad
from plimsoll.cluster.queues.tree import QueueTree
from plimsoll.model.kai import Queue
from plimsoll.packing import Milli
from plimsoll.text import shortlist

OVER_LIMIT: Final = "OverLimit"
OVER_QUOTA: Final = "NonPreemptibleOverQuota"
NO_QUEUE: Final = "QueueDoesNotExist"
"""KAI's reasons on a PodGroup that it does not admit."""


class QueueGate:
    """Queues with their allocated resources; `loads` is by the queue that pods name.

    `admit` counts what it admits, so that several demands of one queue cannot exceed together what each may have alone.
    The caller keeps the order stable.
    """

    def __init__(self, queues: QueueTree | Iterable[Queue], loads: Mapping[str, QueueLoad] | None = None) -> None:
        self._tree = queues if isinstance(queues, QueueTree) else QueueTree(queues)
        self._loads: defaultdict[str, QueueLoad] = defaultdict(QueueLoad)
        self._unfit: dict[str, str] = {}
        for name, load in (loads or {}).items():
            self._add(name, load)

    def why_not(self, queue: str, amount: Amount, preemptible: bool, rounding: Milli = 0) -> str:
        """Why the queue would not admit that much more, starting with KAI's reason; empty if it would. `rounding` is
        compared with limits and quotas of GPUs beside the amount.

        The limit of each resource applies to the queue and to every ancestor; non-preemptible work must fit their
        quotas too. A resource that is absent in a Queue has limit 0; what is not requested is not compared. Pods
        without a queue are always admitted, and so are all pods if the cluster has no queues, because KAI is not
        installed then.
        """
        tree = self._tree
        if not queue or not tree:
            return ""
        unfit = self._unfit_why(queue)
        if unfit:
            return unfit
        compared = amount + Amount(rounding)
        for name in tree.path_to_root(queue):
            load = self._loads[name]
            for resource in Resource:
                asked = compared[resource]
                if not asked:
                    continue
                amounts, more = tree.amounts(name, resource), _part(asked)
                more += " (rounded up, as by KAI)" if asked != amount[resource] else ""
                if amounts.limit == 0:
                    return (
                        f"{OVER_LIMIT}: {_who(name, queue)} admits no {resource}, and {more} are requested: set "
                        f"spec.resources.{resource}.limit (-1 for unlimited); KAI takes an absent limit as 0"
                    )
                if amounts.limit is not None and load.allocated[resource] + asked > amounts.limit:
                    return (
                        f"{OVER_LIMIT}: {_who(name, queue)} has {_part(load.allocated[resource])} of its limit of "
                        f"{shown(amounts.limit, resource)} in use, and {more} more are requested: raise "
                        f"spec.resources.{resource}.limit, or wait until other work of it ends"
                    )
                used = load.non_preemptible[resource]
                if not preemptible and amounts.quota is not None and used + asked > amounts.quota:
                    return (
                        f"{OVER_QUOTA}: {_who(name, queue)} has {_part(used)} of its quota of "
                        f"{shown(amounts.quota, resource)} in use by work that is not preemptible, and {more} more "
                        f"are requested: raise spec.resources.{resource}.quota, or use a priority below 100"
                    )
        return ""

    def admit(self, queue: str, amount: Amount, preemptible: bool, rounding: Milli = 0) -> str:
        """As `why_not`; counts the amount as allocated if it is admitted."""
        why = self.why_not(queue, amount, preemptible, rounding)
        if not why:
            self._add(queue, QueueLoad.of(amount, preemptible=preemptible))
        return why

    def admit_all(self, requests: Iterable[tuple[str, bool, Amount, Milli]]) -> str:
        """As `admit`, for all of these (queue, whether preemptible, amount, rounding) or none."""
        before = self._loads
        self._loads = before.copy()
        for queue, preemptible, amount, rounding in requests:
            if why := self.admit(queue, amount, preemptible, rounding):
                self._loads = before
                return why
        return ""

    def tight(self, requests: Iterable[tuple[str, QueueLoad]]) -> set[str]:
        """The queues that would not admit all of the requests (queue, load), in any order."""
        if not self._tree:
            return set()
        requests = tuple(requests)
        sums = defaultdict(QueueLoad, self._loads)
        for queue, load in requests:
            for name in self._tree.path_to_root(queue):
                sums[name] += load
        over = {name for name, load in sums.items() if self._passes(name, load)}
        queues = {queue for queue, _ in requests if queue}
        return {queue for queue in queues if self._unfit_why(queue) or over & set(self._tree.path_to_root(queue))}

    def _passes(self, name: str, load: QueueLoad) -> bool:
        """Whether the load exceeds the queue's limit or quota."""
        if name not in self._tree:
            return False
        for resource in Resource:
            amounts = self._tree.amounts(name, resource)
            for most, used in ((amounts.limit, load.allocated), (amounts.quota, load.non_preemptible)):
                if most is not None and used[resource] > most:
                    return True
        return False

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
        for name in self._tree.path_to_root(queue):
            self._loads[name] += load


def _who(name: str, queue: str) -> str:
    return f"Queue {name}" if name == queue else f"Queue {name}, above {queue},"


def _part(milli: Milli) -> str:
    return f"{float(milli) / MILLI:.10g}"
