"""The forms in which a pod asks for GPUs and other devices, and which of them a pod may use together.

Sources: KAI's admission for its annotations beside each other and beside whole GPUs. KAI admits a share beside MIG
devices and devices of other vendors, and its scheduler then counts the share alone; here such pods are refused.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import combinations, combinations_with_replacement, product
from types import MappingProxyType
from typing import Final, NamedTuple

from plimsoll.cluster.pods.unreadable import RequestRefusal, shown
from plimsoll.model.cluster import VENDOR_RESOURCES


class Form(StrEnum):
    """In the order in which messages name them."""

    FRACTION = "fraction"
    """KAI's `gpu-fraction`."""
    MEMORY = "memory"
    """KAI's `gpu-memory`."""
    CONTAINER = "container"
    """KAI's requests by container (NvFractions)."""
    TENSOR_FUSION = "tensor-fusion"
    WHOLE = "whole"
    """Whole GPUs: the Environment's resource."""
    DECLARED = "declared"
    """Devices that are parts of GPUs, of which the Environment says where they are (`sharedDevices`), and whole GPUs of
    other vendors that nodes of NodePools have."""
    PROVIDED = "provided"
    """Those whose nodes Karpenter provides by itself (NodeOverlays)."""
    UNDECLARED = "undeclared"
    """All other devices that are parts of GPUs."""
    OTHER_VENDOR = "other-vendor"
    """Accelerators of another vendor than the Environment's."""
    UNKNOWN = "unknown"
    """Other resources of NVIDIA's domain: network devices, virtual GPUs, and others."""
    CLAIM = "claim"
    """Claims of Dynamic Resource Allocation."""


class Asked(NamedTuple):
    form: Form
    field: str
    value: str
    """As in the pod; of resources, the number."""
    owner: str = ""
    """Whose devices or form these are, for messages; empty: not needed."""


SHARES: Final = (Form.FRACTION, Form.MEMORY, Form.CONTAINER, Form.TENSOR_FUSION)
"""Requests by annotations."""
PARTS: Final = (Form.DECLARED, Form.PROVIDED, Form.UNDECLARED)
"""Requests of devices that are parts of GPUs."""
_FOREIGN: Final = (Form.OTHER_VENDOR, Form.UNKNOWN, Form.CLAIM)
"""Requests for which others provide nodes, or nobody does."""

_TOGETHER: Final = frozenset(
    frozenset(pair)
    for pair in (
        # One request in two forms, which KAI's admission allows.
        (Form.FRACTION, Form.CONTAINER),
        (Form.MEMORY, Form.CONTAINER),
        # Others provide the nodes, and see both requests.
        *product((Form.WHOLE, Form.PROVIDED), (Form.UNKNOWN, Form.CLAIM)),
        (Form.PROVIDED, Form.PROVIDED),
        *combinations_with_replacement(_FOREIGN, 2),
    )
)
"""The pairs that one pod may ask for, also with two resources of one form. Every other pair is refused."""

_SHARE_WHY: Final = "which asks for the same GPUs in another form"
_PART_WHY: Final = "and capacity is planned for one kind of device of a pod"
_WHY: Final[Mapping[Form, str]] = MappingProxyType(
    {
        **dict.fromkeys(SHARES, _SHARE_WHY),
        Form.WHOLE: "and a pod uses parts of GPUs or whole ones",
        **dict.fromkeys(PARTS, _PART_WHY),
        Form.OTHER_VENDOR: "and no node is known that has both",
        Form.UNKNOWN: "and no node is known that has both",
        Form.CLAIM: "and capacity for claims of devices is not planned",
    }
)
"""Why the later form of a refused pair cannot be beside the earlier one."""


def may_be_together(one: Form, other: Form) -> bool:
    """Whether a pod may ask for devices in both forms; of one form: for two resources of it."""
    return frozenset((one, other)) in _TOGETHER


def why_not_together(asked: Iterable[Asked]) -> RequestRefusal | None:
    """The first pair that no pod may ask for, such as whole GPUs of two vendors; None if there is none."""
    order = list(Form)
    for one, other in combinations(sorted(asked, key=lambda each: (order.index(each.form), each.field)), 2):
        if not may_be_together(one.form, other.form) or VENDOR_RESOURCES.keys() >= {one.field, other.field}:
            owner = f" ({other.owner})" if other.owner else ""
            return RequestRefusal(
                f"{one.field} {shown(one.value)} is set besides {other.field} {shown(other.value)}{owner}, "
                f"{_WHY[other.form]}",
                "keep one of the two",
            )
    return None
