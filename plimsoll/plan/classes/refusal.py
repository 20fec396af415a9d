"""Refusal: why a pod gets no capacity, and what to change."""

from dataclasses import dataclass
from enum import StrEnum


class RefusalReason(StrEnum):
    """The closed list of reasons."""

    UNREADABLE = "Unreadable"
    """Its request cannot be read, or is for parts of GPUs that are not declared."""
    TOO_LARGE = "TooLarge"
    """No kind of GPU that could serve it has what it requests."""
    CLAIM = "Claim"
    """What its claims name does not exist, no devices meet them, or what they ask for is not planned for
    (ClaimNotPlanned)."""
    NO_NODE = "NoNode"
    """No node that it may use has room for it."""
    BLOCKED = "Blocked"
    """The instance types that could serve it are skipped for now."""
    SURPLUS = "Surplus"
    """A new node would have too many more GPUs than it needs."""
    LIMIT = "Limit"
    """A limit of a NodePool or of the Environment leaves no room for it."""
    NOT_ALLOWED = "NotAllowed"
    """Its namespace may not have it, by `access` of the Environment or a ResourceQuota, or its scheduler serves no such
    request, or it has no queue."""
    QUEUE = "Queue"
    """Its queue does not admit it."""
    GANG = "Gang"
    """Its gang cannot start."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal renders itself with the names of pods and workloads (`str`), and without them for other readers."""

    reason: RefusalReason
    problem: str
    """What is wrong."""
    advice: str = ""
    """What to change; empty if `problem` says it."""
    objects: tuple[tuple[str, str], ...] = ()
    """The names of pods and workloads in `problem`, each with what stands for it where others read it."""

    def __str__(self) -> str:
        return f"{self.problem}: {self.advice}" if self.advice else self.problem

    @property
    def without_names(self) -> str:
        """The text for readers who may not know the names of others' pods and workloads."""
        text = str(self)
        # The longest first: a name may begin with another one.
        for name, stand_in in sorted(self.objects, key=lambda named: -len(named[0])):
            text = text.replace(name, stand_in)
        return text

    def of_gang(self, name: str, problem: str) -> "Refusal":
        """The refusal of a whole gang because of this one. A refusal that is of the gang already stays as it is."""
        if self.is_of(name):
            return self
        whole = ((name, "a gang"), *self.objects)
        return Refusal(RefusalReason.GANG, f"{name} {problem}: {self.problem}", self.advice, whole)

    def is_of(self, gang: str) -> bool:
        """Whether it is because others of this gang have no place."""
        return any(name == gang for name, _ in self.objects)
