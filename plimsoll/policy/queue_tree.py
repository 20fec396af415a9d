"""Rules on Queues and on who names them: the checks of `plimsoll queues check`, with what the other rules have."""

from collections.abc import Iterator, Sequence
from typing import Final

from plimsoll.model.meta import Declared, Finding
from plimsoll.plan.queues import check_queues
from plimsoll.policy.cel import value
from plimsoll.policy.fields import Manifest
from plimsoll.policy.rule import Cel, Family, Rule, Subject
from plimsoll.policy.world import World

UNKNOWN_RULE: Final = "queue-unknown"
_QUEUE: Final = ("Queue",)
_USERS: Final = ("whatever names a queue",)


class KnownQueues(Declared):
    queues: tuple[str, ...] = ()
    """Leaf queues that are declared elsewhere."""


def findings(manifests: Sequence[Manifest], world: World, options: KnownQueues) -> Iterator[Finding]:
    """Raises InvalidObjectError where a manifest lacks the parts of a Kubernetes object."""
    for finding in check_queues(manifests, options.queues):
        # Where no queue is known at all, they are somebody else's.
        if finding.rule != UNKNOWN_RULE or world.queues is not None:
            yield finding


def _rule(name: str, summary: str, remedy: str, reads: tuple[str, ...] = _QUEUE, cel: Cel | None = None) -> Rule:
    return Rule(name, Family.QUEUES, summary, remedy, reads, cel=cel)


_CHILDREN: Final = value("oldObject", "status.childQueues", "[]")
_REQUESTED: Final = value("oldObject", "status.requested", "{}")
_NO_CHILDREN: Final = Cel(
    (Subject.QUEUE_DELETIONS,),
    f"size({_CHILDREN}) == 0",
    message=f"'Queue ' + oldObject.metadata.name + ' is the parent of ' + {_CHILDREN}.join(', ')"
    " + ': KAI would drop them; delete or move them first'",
)
_NO_WORK: Final = Cel(
    (Subject.QUEUE_DELETIONS,),
    f"!{_REQUESTED}.exists(name, quantity(string({_REQUESTED}[name])).isGreaterThan(quantity('0')))",
    message=f"'Queue ' + oldObject.metadata.name + ' has work that asks for ' + {_REQUESTED}.map(name,"
    f" string({_REQUESTED}[name]) + ' ' + name).join(', ') + ': let it end, or move it first'",
)
"""By the status that KAI's queue controller writes: no admission policy can look for other objects."""


RULES: Final = (
    Rule(
        UNKNOWN_RULE,
        Family.QUEUES,
        "Whoever names a queue names one that is declared, or that the option `queues` lists.",
        "Declare the queue, name another, or list it in the option.",
        _USERS,
        options=KnownQueues,
    ),
    _rule(
        "queue-not-leaf", "Whoever names a queue names a leaf: only leaves schedule.", "Name a queue below it.", _USERS
    ),
    _rule("queue-duplicate", "A queue is declared once.", "Keep one of the declarations."),
    _rule("queue-cycle", "The parents of queues go in no circle.", "Let one of the queues have no parent."),
    _rule(
        "queue-parent-missing",
        "The parent of a queue is declared: KAI drops a queue without it.",
        "Declare the parent, or name another.",
    ),
    _rule(
        "queue-children-over-quota",
        "The quotas of a queue's children are no more than its own.",
        "Raise the parent's quota, or lower the children's.",
    ),
    _rule("queue-limit-below-quota", "The limit of a queue is no less than its quota.", "Raise the limit; -1 is none."),
    _rule("queue-negative", "Amounts of a queue are not negative, but for -1.", "Write 0 or more, or -1."),
    _rule("queue-resources-missing", "A queue says its resources.", "Write quota, limit and overQuotaWeight of each."),
    _rule("queue-invalid-field", "Fields of a queue have the types that KAI reads.", "Correct the field."),
    _rule("queue-unknown-field", "A queue has no fields that the cluster drops.", "Correct or remove the field."),
    _rule("queue-duration", "Runtimes of a queue are durations.", "Write one such as 10m."),
    _rule(
        "queue-deleted-with-children",
        "A queue that is to be deleted has no children.",
        "Delete or move the children first.",
        cel=_NO_CHILDREN,
    ),
    _rule(
        "queue-deleted-with-podgroups",
        "A queue that is to be deleted has no PodGroups.",
        "Let them end, or move them first.",
        ("Queue", "PodGroup"),
        cel=_NO_WORK,
    ),
)
