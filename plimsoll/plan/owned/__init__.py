"""Objects that the engine made: their names, labels, owners and progress."""

from plimsoll.plan.owned.attempts import Attempts, Failed, Trying, as_status
from plimsoll.plan.owned.delta import KARPENTER, Delta, key_of
from plimsoll.plan.owned.names import claim_names, object_labels, ownership_labels
from plimsoll.plan.owned.ownership import Owned, Ownership, alive, by_age, made_for
from plimsoll.plan.owned.progress import ClaimProgress, Wait, parse_time, phase_of, words_of
from plimsoll.plan.owned.request_objects import Asking, asking, signalled

__all__ = [
    "KARPENTER",
    "Asking",
    "Attempts",
    "ClaimProgress",
    "Delta",
    "Failed",
    "Owned",
    "Ownership",
    "Trying",
    "Wait",
    "alive",
    "as_status",
    "asking",
    "by_age",
    "claim_names",
    "key_of",
    "made_for",
    "object_labels",
    "ownership_labels",
    "parse_time",
    "phase_of",
    "signalled",
    "words_of",
]
