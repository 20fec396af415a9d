"""PodRule: where a pod must be relative to other pods, by required affinity, anti-affinity or topology spread."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from plimsoll.model.meta.placement import NodeRequirement
from plimsoll.packing import Relation

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_FIELDS: Final = (("podAffinity", Relation.TOGETHER), ("podAntiAffinity", Relation.APART))
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Selects pods by labels and namespaces."""

    labels: tuple[NodeRequirement, ...] | None = ()
    """Conditions that the labels meet; empty: all pods; None: no pod."""
    namespaces: tuple[str, ...] | None = ()
    """Empty: that of the pod with the rule; None: all."""
    same: tuple[str, ...] = ()
    """Labels that must be as on the pod with the rule (`matchLabelKeys`)."""
    other: tuple[str, ...] = ()
    """Labels that must not be as on the pod with the rule (`mismatchLabelKeys`)."""

    def of(self, namespace: str, labels: Mapping[str, str]) -> "PodSelector":
        """The selector of a rule of a pod with this namespace and these labels, which is the same for equal pods."""
        own = [NodeRequirement(key, "In", (labels[key],)) for key in self.same if key in labels]
        own += [NodeRequirement(key, "NotIn", (labels[key],)) for key in self.other if key in labels]
        selected = None if self.labels is None else tuple(sorted({*self.labels, *own}))
        return PodSelector(selected, (namespace,) if self.namespaces == () else self.namespaces)

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Of a selector that `of` returned."""
        inside = self.namespaces is None or namespace in self.namespaces
        return inside and self.labels is not None and all(each.allows(labels.get(each.key)) for each in self.labels)

    def __str__(self) -> str:
        return " and ".join(map(str, self.labels)) or "any pod" if self.labels is not None else "no pod"


@dataclass(frozen=True, slots=True)
class PodRule:
    """One required term. A domain is the nodes with the same value of the label `key`."""

    relation: Relation
    key: str
    pods: PodSelector
    skew: int = 1
    least_domains: int = 1
    by_taints: bool = False
    """SPREAD: whether nodes whose taints the pod does not tolerate are left out."""
    by_placement: bool = True
    """SPREAD: whether nodes that its node selector and affinity exclude are left out."""
    obstacle: str = ""
    """Why it cannot be planned; empty if it can."""

    def __str__(self) -> str:
        match self.relation:
            case Relation.TOGETHER:
                return f"by podAffinity, in one {self.key} with {self.pods}"
            case Relation.APART:
                return f"by podAntiAffinity, in no {self.key} with {self.pods}"
            case Relation.SPREAD:
                return f"by topologySpreadConstraints, spread over {self.key} with {self.pods}"


PodRules = tuple[PodRule, ...]


def read_rules(spec: Mapping[str, Any]) -> PodRules:
    """The required rules of a pod's spec; preferred ones are left out. Raises ValueError, which names the field that
    cannot be read."""
    affinity = spec.get("affinity") or {}
    try:
        found = [(affinity.get(field) or {}).get(_REQUIRED) or [] for field, _ in _FIELDS]
        spread = [
            each
            for each in spec.get("topologySpreadConstraints") or ()
            if each.get("whenUnsatisfiable") != "ScheduleAnyway"
        ]
        if not (spread or any(found)):
            return ()
        return _read(json.dumps([*found, spread], sort_keys=True))
    except (AttributeError, OverflowError, TypeError):
        raise ValueError(
            "affinity.podAffinity, podAntiAffinity or topologySpreadConstraints have other types than those of a pod"
        ) from None


@lru_cache(maxsize=16_384)
def _read(text: str) -> PodRules:
    *terms, spread = json.loads(text)
    found = [
        PodRule(relation, str(term.get("topologyKey") or ""), _selector(term), obstacle=_obstacle(field, term))
        for (field, relation), of_field in zip(_FIELDS, terms, strict=True)
        for term in of_field
    ]
    return (*found, *(_spread(each) for each in spread))


def _spread(constraint: Mapping[str, Any]) -> PodRule:
    return PodRule(
        Relation.SPREAD,
        str(constraint.get("topologyKey") or ""),
        _selector(constraint),
        skew=max(1, int(constraint.get("maxSkew") or 1)),
        least_domains=max(1, int(constraint.get("minDomains") or 1)),
        by_taints=constraint.get("nodeTaintsPolicy") == "Honor",
        by_placement=constraint.get("nodeAffinityPolicy") != "Ignore",
    )


def _obstacle(field: str, term: Mapping[str, Any]) -> str:
    if (selector := term.get("namespaceSelector")) and any(selector.values()):
        return f"spec.affinity.{field} selects namespaces by their labels (namespaceSelector)"
    return ""


def _selector(term: Mapping[str, Any]) -> PodSelector:
    named = tuple(sorted(map(str, term.get("namespaces") or ())))
    # One with conditions counts as all namespaces: of a running pod that keeps others away, no fewer may be meant.
    selector, everywhere = term.get("labelSelector"), term.get("namespaceSelector") is not None
    return PodSelector(
        None if selector is None else tuple(sorted(_conditions(selector))),
        None if everywhere else named,
        tuple(sorted(map(str, term.get("matchLabelKeys") or ()))),
        tuple(sorted(map(str, term.get("mismatchLabelKeys") or ()))),
    )


def _conditions(selector: Mapping[str, Any]) -> Iterator[NodeRequirement]:
    for key, value in (selector.get("matchLabels") or {}).items():
        yield NodeRequirement(str(key), "In", (str(value),))
    for each in selector.get("matchExpressions") or ():
        operator = each.get("operator")
        if operator not in _OPERATORS:
            raise ValueError(
                f"a labelSelector of a rule about pods: operator {operator!r} is none of {', '.join(_OPERATORS)}"
            )
        yield NodeRequirement(str(each.get("key") or ""), operator, tuple(sorted(map(str, each.get("values") or ()))))
