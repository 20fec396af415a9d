"""Placement: the nodes on which a pod may run, by node selector, required node affinity and tolerations."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from plimsoll.model.meta.taint import Taint, Toleration, untolerated

_NOT_SCHEDULED_BY: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Taints by conditions, which every pod tolerates by default."""
_WHOLE: Final = re.compile("[+-]?[0-9]{1,19}")
"""A number of 64 bits, as Gt and Lt compare."""
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


@dataclass(frozen=True, slots=True, order=True)
class NodeRequirement:
    """One condition on a label of a node (corev1.NodeSelectorRequirement), or on its name (`matchFields`)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    field: bool = False
    """Whether `key` is a field, `metadata.name`, instead of a label."""

    def allows(self, value: str | None) -> bool:
        """Whether the requirement allows the value (None: no such label), as the scheduler's NodeAffinity does."""
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Gte":
                return _compared(value, self.values, self.operator == "Gte", 1)
            case "Lt" | "Lte":
                return _compared(value, self.values, self.operator == "Lte", -1)
        return False

    def __str__(self) -> str:
        values = f" ({', '.join(self.values)})" if self.values else ""
        return f"{self.key} {self.operator}{values}"


Terms = tuple[tuple[NodeRequirement, ...], ...]
"""Alternatives, each a list of conditions that must all match; empty: no required affinity."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Sorted, so that equal placements are equal values; one object for equal pods."""

    node_selector: tuple[tuple[str, str], ...] = ()
    affinity: Terms = ()
    """`requiredDuringSchedulingIgnoredDuringExecution`."""
    tolerations: tuple[Toleration, ...] = ()
    """Without those for not-ready and unreachable nodes, which every pod has."""
    preferred: tuple[tuple[int, tuple[NodeRequirement, ...]], ...] = ()
    """`preferredDuringSchedulingIgnoredDuringExecution`: (weight, conditions). Nodes need not meet them."""

    @classmethod
    def read(cls, spec: Mapping[str, Any]) -> "Placement":
        """Reads a pod's spec. Raises ValueError, which names the field that cannot be read."""
        try:
            return cls._read(spec)
        except (AttributeError, OverflowError, TypeError):
            raise ValueError("nodeSelector, affinity or tolerations have other types than those of a pod") from None

    @classmethod
    def _read(cls, spec: Mapping[str, Any]) -> "Placement":
        affinity = spec.get("affinity") or {}
        node_affinity = (affinity.get("nodeAffinity") if isinstance(affinity, Mapping) else None) or {}
        stated = [
            spec.get("nodeSelector") or {},
            node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {},
            [each for each in spec.get("tolerations") or () if not _given_to_all(each)],
            node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or [],
        ]
        if not any(stated):
            return ANYWHERE
        return _shared(json.dumps(stated, sort_keys=True))

    @property
    def conditions(self) -> int:
        """How many conditions, with their values, it has."""
        terms = (*self.affinity, *(term for _, term in self.preferred))
        return (
            len(self.node_selector)
            + len(self.tolerations)
            + sum(1 + len(each.values) for term in terms for each in term)
        )

    def allows(self, labels: Mapping[str, str], name: str = "") -> bool:
        """Whether a node with these labels and that name may run the pod, except for taints."""
        if any(labels.get(key) != value for key, value in self.node_selector):
            return False
        return not self.affinity or any(
            all(each.allows(name if each.field else labels.get(each.key)) for each in term) for term in self.affinity
        )

    def requires(self, label: str, values: Collection[str]) -> bool:
        """Whether every node that may run the pod has one of these values."""
        if dict(self.node_selector).get(label) in values:
            return True
        return bool(self.affinity) and all(
            any(each.key == label and each.operator == "In" and {*each.values} <= {*values} for each in term)
            for term in self.affinity
        )

    def on(self, nodes: NodeRequirement) -> "Placement":
        """The same on nodes that meet a further condition; one object for equal ones."""
        return _within(self, ((nodes,),))

    def admits(self, labels: Mapping[str, str], taints: tuple[Taint, ...], name: str = "") -> bool:
        """Whether a node with these labels and taints, and that name, may run the pod."""
        return self.allows(labels, name) and not self.untolerated_taints(taints)

    def within(self, *alternatives: tuple[NodeRequirement, ...]) -> "Placement":
        """The same on nodes that meet all conditions of one of these alternatives, too; one object for equal values."""
        return _within(self, alternatives)

    def untolerated_taints(self, taints: tuple[Taint, ...]) -> list[Taint]:
        """The taints that are not tolerated."""
        return untolerated(taints, self.tolerations) if taints else []


ANYWHERE: Final = Placement()
"""Placement of a pod without constraints."""


@lru_cache(maxsize=16_384)
def _within(placement: Placement, alternatives: Terms) -> Placement:
    terms = {tuple(sorted({*term, *more})) for term in placement.affinity or ((),) for more in alternatives}
    return replace(placement, affinity=tuple(sorted(terms)))


@lru_cache(maxsize=16_384)
def _shared(text: str) -> Placement:
    selector, required, tolerations, preferred = json.loads(text)
    terms = required.get("nodeSelectorTerms") or ()
    return Placement(
        tuple(sorted((str(key), _string(value, f"nodeSelector: {key}")) for key, value in selector.items())),
        tuple(sorted({tuple(sorted(_requirements(term))) for term in terms})),
        tuple(sorted((Toleration.model_validate(each) for each in tolerations), key=repr)),
        tuple(
            sorted(
                (int(each.get("weight") or 0), tuple(sorted(_requirements(each.get("preference") or {}))))
                for each in preferred
            )
        ),
    )


def _requirements(term: Mapping[str, Any]) -> list[NodeRequirement]:
    found = []
    for part, field in (("matchExpressions", False), ("matchFields", True)):
        for each in term.get(part) or ():
            operator = each.get("operator")
            if operator not in _OPERATORS:
                raise ValueError(f"affinity.nodeAffinity: operator {operator!r} is none of {', '.join(_OPERATORS)}")
            of = f"affinity.nodeAffinity: values of {each.get('key')}"
            values = tuple(sorted(_string(value, of) for value in each.get("values") or ()))
            found.append(NodeRequirement(str(each.get("key") or ""), operator, values, field))
    # A term without conditions matches no node.
    return found or [NodeRequirement("", "In")]


def _string(value: object, field: str) -> str:
    """YAML reads `y` and `1` without quotes as a boolean and a number, which the apiserver refuses."""
    if isinstance(value, str):
        return value
    raise ValueError(f"{field}: must be a string: put the value in quotes (given: {value!r})")


def _given_to_all(toleration: Any) -> bool:
    return isinstance(toleration, Mapping) and toleration.get("key") in _NOT_SCHEDULED_BY


def _compared(value: str | None, bounds: tuple[str, ...], equal: bool, sign: int) -> bool:
    numbers = (value or "", *bounds[:1])
    if len(numbers) < 2 or not all(map(_WHOLE.fullmatch, numbers)):
        return False
    difference = sign * (int(numbers[0]) - int(numbers[1]))
    return difference > 0 or (equal and difference == 0)
