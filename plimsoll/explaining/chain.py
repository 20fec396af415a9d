"""Chain: the steps from what asks for GPUs to the nodes that serve it, and the changes that would help; values."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple


class Step(StrEnum):
    """The steps, in their order."""

    REQUEST = "Request"
    """What is asked for."""
    QUEUE = "Queue"
    """Whether namespace and queue admit it."""
    PLACE = "Place"
    """The verdict, or where it is planned."""
    ORDER = "Order"
    """The objects that ask Karpenter or an autoscaler for nodes."""
    ANSWER = "Answer"
    """What Karpenter or the autoscaler answers."""
    NODE = "Node"
    COST = "Cost"
    END = "End"
    """When it goes, and what keeps it."""


class State(StrEnum):
    PASSED = "Passed"
    WAITING = "Waiting"
    """It goes on without anybody's help."""
    BLOCKED = "Blocked"
    """It goes on once somebody changes something."""


class StepReason(StrEnum):
    """Why a step does not pass, where that is neither a verdict nor a refusal, a phase or a stage: the closed list."""

    NO_PROVISIONER = "NoProvisioner"
    NODE_UNUSABLE = "NodeUnusable"
    NODE_GONE = "NodeGone"
    GATED = "Gated"
    PREEMPTING = "Preempting"
    NOT_YET_UNSCHEDULABLE = "NotYetUnschedulable"
    WHOLE_GPUS = "WholeGPUs"
    GRACE = "Grace"
    WITHHELD = "Withheld"
    LIMITED = "Limited"
    NOT_REQUESTED_YET = "NotRequestedYet"
    CLAIM_REFUSED = "ClaimRefused"
    CLAIM_WAITS = "ClaimWaits"
    ATTEMPT_FAILED = "AttemptFailed"
    WORKLOAD_NOT_READY = "WorkloadNotReady"
    SEVERAL_WAIT = "SeveralWait"
    DELETING = "Deleting"


class Link(NamedTuple):
    """One step of a chain."""

    step: Step
    state: State
    text: str
    reason: str = ""
    """From the closed lists: RefusalReason, Reason, DemandPhase, ClaimStage, StepReason; empty for a step that
    passed."""


@dataclass(frozen=True)
class Remedy:
    """A change that helps, by the plan with it."""

    changes: tuple[str, ...]
    """Each as `Kind name: field: before -> after`."""
    touches: str
    """Whose object it changes, and so who else is touched: `the pod`, `the queue`, `the namespace`, `the NodePool` or
    `the cluster`; of several changes the widest."""
    helped: int
    """Pods, or Workspaces, that would have capacity and have none now."""
    nodes: int = 0
    """Nodes that are requested in addition."""
    gpus: int = 0
    price: float | None = 0.0
    """What these cost an hour; None where a price is not known."""

    def as_json(self) -> dict[str, Any]:
        return {
            "changes": list(self.changes),
            "touches": self.touches,
            "helped": self.helped,
            "nodes": self.nodes,
            "gpus": self.gpus,
            "pricePerHour": self.price,
        }


@dataclass(frozen=True)
class Chain:
    """Why something has its GPUs, or has none."""

    subject: str
    """Such as `Pod team/train-0`."""
    links: tuple[Link, ...]
    remedies: tuple[Remedy, ...] = ()
    """The cheapest first, and of those that cost the same, the one that touches the fewest."""
    notes: tuple[str, ...] = field(default=())
    """What else is known, such as Events, or why no change was found."""

    @property
    def decisive(self) -> Link:
        """The first step that is blocked, else the first that waits, else the last one."""
        for state in (State.BLOCKED, State.WAITING):
            found = next((link for link in self.links if link.state is state), None)
            if found is not None:
                return found
        return self.links[-1]

    @property
    def blocked(self) -> bool:
        return self.decisive.state is State.BLOCKED

    def as_json(self) -> dict[str, Any]:
        """`subject`, `state`, `reason`, `answer`, `links`, `remedies`, `notes`."""
        decisive = self.decisive
        return {
            "subject": self.subject,
            "state": decisive.state.value,
            "reason": decisive.reason or None,
            "answer": decisive.text,
            "links": [
                {"step": link.step.value, "state": link.state.value, "reason": link.reason or None, "text": link.text}
                for link in self.links
            ],
            "remedies": [each.as_json() for each in self.remedies],
            "notes": list(self.notes),
        }
