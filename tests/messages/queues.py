"""Messages of refused demand about its queue."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from plimsoll.cluster.queues import Amount, QueueGate, QueueLoad
from plimsoll.model.kai import Queue
from tests.queues.manifests import amounts, queue

TREE: Final = [
    queue("root", gpu=amounts(4, 10)),
    queue("team", "root", amounts(4, 8)),
    queue("leaf", "team", amounts(2, 6)),
    queue("other", "team", amounts(2)),
    queue("orphan", "gone"),
    queue("cycle", "cycle-of"),
    queue("cycle-of", "cycle"),
    queue("below-cycle", "cycle"),
]


class _Request(NamedTuple):
    queue: str = "leaf"
    milli: int = 1000
    preemptible: bool = True
    loads: Mapping[str, QueueLoad] = {}


CASES: Final[Mapping[str, _Request]] = {
    "above the limit": _Request(milli=6001),
    "above the limit of an ancestor": _Request(loads={"other": QueueLoad(Amount(7500))}),
    "above the quota, not preemptible": _Request(milli=2001, preemptible=False),
    "above the quota of an ancestor, not preemptible": _Request(
        preemptible=False, loads={"other": QueueLoad(Amount(3500), Amount(3500))}
    ),
    "no such queue": _Request("nobody"),
    "a queue with child queues": _Request("team"),
    "a queue whose parent is missing": _Request("orphan"),
    "a queue below a cycle": _Request("below-cycle"),
}


def messages() -> dict[str, Any]:
    tree = [Queue.read(manifest) for manifest in TREE]
    return {
        name: QueueGate(tree, case.loads).why_not(case.queue, Amount(case.milli), case.preemptible)
        for name, case in CASES.items()
    }
