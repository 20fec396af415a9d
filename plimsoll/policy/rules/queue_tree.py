"""Rules on Queues and on the objects that use them: the checks of `plimsoll queues check`, as policy rules."""

from collections.abc import Iterator, Sequence
from typing import Final

from plimsoll.cluster.queues import check_queues
from plimsoll.model.meta import Declared, Finding, Severity
from plimsoll.policy.cel import value
from plimsoll.policy.context import PolicyContext
from plimsoll.policy.fields import Manifest
from plimsoll.policy.rule import Cel, Family, Rule, Subject

UNKNOWN_RULE: Final = "queue-unknown"
_QUEUE: Final = ("Queue",)
_USERS: Final = ("objects with a queue",)


class KnownQueues(Declared):
    queues: tuple[str, ...] = ()
    """Leaf queues that are declared elsewhere."""


def queue_findings(manifests: Sequence[Manifest], context: PolicyContext, options: KnownQueues) -> Iterator[Finding]:
    """Raises InvalidObjectError if a manifest is not a Kubernetes object."""
    for finding in check_queues(manifests, options.queues, label=context.node_pool_label):
        # If no queue is known, queues are declared elsewhere.
        if finding.rule != UNKNOWN_RULE or context.queues is not None:
            yield finding


def _rule(name: str, summary: str, remedy: str, reads: tuple[str, ...] = _QUEUE, cel: Cel | None = None) -> Rule:
    return Rule(name, Family.QUEUES, summary, remedy, reads, cel=cel)


_CHILDREN: Final = value("oldObject", "status.childQueues", "[]")
_NO_CHILDREN: Final = Cel(
    (Subject.QUEUE_DELETIONS,),
    f"size({_CHILDREN}) == 0",
    message=f"'Queue ' + oldObject.metadata.name + ' is the parent of ' + {_CHILDREN}.join(', ')"
    " + ': KAI would ignore them; delete or move them first'",
)
_NO_WORK: Final = Cel(
    (Subject.QUEUE_DELETIONS,),
    f"!(oldObject.metadata.name in {value('params', 'status.queuesInUse', '[]')})",
    message="'Queue ' + oldObject.metadata.name + ' has pods or PodGroups: wait until they end, or move them first'",
)
"""An admission policy cannot read other objects: the controller lists the queues in the status of the Environment. What
KAI's queue controller writes to a Queue lacks PodGroups that do not have its label."""


RULES: Final = (
    Rule(
        UNKNOWN_RULE,
        Family.QUEUES,
        "The queue of an object is declared, or listed in the option `queues`.",
        "Declare the queue, use another one, or list it in the option.",
        _USERS,
        options=KnownQueues,
    ),
    _rule(
        "queue-not-leaf",
        "The queue of an object is a leaf queue: KAI schedules only leaf queues.",
        "Use a leaf queue below it.",
        _USERS,
    ),
    _rule(
        "queue-other-node-pool",
        "An object has the label of KAI's node pool of its queue: no scheduler sees both otherwise.",
        "Give both the same label of KAI's node pool.",
        _USERS,
    ),
    _rule(
        "queue-parent-other-node-pool",
        "A queue has the label of KAI's node pool of its parent.",
        "Give both the same label of KAI's node pool.",
    ),
    Rule(
        "queue-without-node-pool",
        Family.QUEUES,
        "A NodePool has the label of KAI's node pool of a queue in its template.",
        "Set the label of the queue's node pool in the template of a NodePool.",
        ("Queue", "NodePool"),
        severity=Severity.WARNING,
    ),
    _rule("queue-duplicate", "A queue is declared once.", "Remove all declarations but one."),
    _rule("queue-cycle", "The parents of queues form no cycle.", "Remove the parent of one of the queues."),
    _rule(
        "queue-parent-missing",
        "The parent of a queue is declared: KAI ignores a queue without it.",
        "Declare the parent, or use another one.",
    ),
    _rule(
        "queue-children-over-quota",
        "The sum of the quotas of a queue's children does not exceed its own quota.",
        "Raise the parent's quota, or lower the children's.",
    ),
    _rule(
        "queue-limit-below-quota", "The limit of a queue is at least its quota.", "Raise the limit; -1 is unlimited."
    ),
    _rule("queue-negative", "Amounts of a queue are not negative, except -1.", "Set 0 or more, or -1 for unlimited."),
    _rule(
        "queue-resources-missing",
        "A queue declares its resources.",
        "Set quota, limit and overQuotaWeight of each resource.",
    ),
    Rule(
        "queue-runs-nothing",
        Family.QUEUES,
        "A queue has limits of CPU and memory: KAI reads an absent limit as 0.",
        "Set the limit; -1 is unlimited.",
        _QUEUE,
        severity=Severity.WARNING,
    ),
    _rule("queue-invalid-field", "Fields of a queue have the types that KAI reads.", "Correct the field."),
    _rule(
        "queue-unknown-field", "A queue has no unknown fields, which the cluster drops.", "Correct or remove the field."
    ),
    _rule("queue-duration", "Runtimes of a queue are durations.", "Set a duration such as 10m."),
    _rule(
        "queue-deleted-with-children",
        "A queue under deletion has no children.",
        "Delete or move the children first.",
        cel=_NO_CHILDREN,
    ),
    _rule(
        "queue-deleted-with-podgroups",
        "A queue under deletion has no PodGroups and no pods.",
        "Wait until they end, or move them first.",
        ("Queue", "PodGroup", "Pod"),
        cel=_NO_WORK,
    ),
)
