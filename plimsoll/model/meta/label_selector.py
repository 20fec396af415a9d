"""Label selectors (metav1.LabelSelector): evaluation, and conversion to node affinity."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from plimsoll.labels import is_label_key, is_label_value
from plimsoll.model.meta.base import Declared

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


def checked_labels(labels: dict[str, str]) -> dict[str, str]:
    """The labels. Raises ValueError for one that Kubernetes would not take."""
    for key, value in labels.items():
        if not is_label_key(key):
            raise ValueError(f"{key!r} is not a label key")
        if not is_label_value(value):
            raise ValueError(f"{key}: {value!r} is not a label value (at most 63 of A-Z a-z 0-9 - _ .)")
    return labels


Labels = Annotated[dict[str, str], AfterValidator(checked_labels)]
"""Labels that are declared."""


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    """An entry of `matchExpressions`, or of the requirements of a NodeClaim, in a manifest."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


class LabelRequirement(Declared):
    """One entry of `matchExpressions`."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    @field_validator("key")
    @classmethod
    def _key(cls, key: str) -> str:
        if not is_label_key(key):
            raise ValueError("not a label key: an optional DNS prefix and '/', then at most 63 of A-Z a-z 0-9 - _ .")
        return key

    @model_validator(mode="after")
    def _values(self) -> "LabelRequirement":
        if self.operator in ("In", "NotIn") and not self.values:
            raise ValueError(f"operator {self.operator} needs at least one value")
        if self.operator in ("Exists", "DoesNotExist") and self.values:
            raise ValueError(f"operator {self.operator} takes no values")
        for value in self.values:
            if not is_label_value(value):
                raise ValueError(f"{value!r} is not a label value (at most 63 of A-Z a-z 0-9 - _ .)")
        return self

    def matches(self, labels: Mapping[str, str]) -> bool:
        """As labels.Requirement of apimachinery: NotIn matches an object without the label."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels

    def __str__(self) -> str:
        values = f" ({', '.join(self.values)})" if self.values else ""
        return f"{self.key} {self.operator}{values}"


class LabelSelector(Declared):
    """Both forms must match. An empty selector matches everything."""

    match_labels: Labels = Field(default_factory=dict)
    match_expressions: tuple[LabelRequirement, ...] = ()

    def requirements(self) -> Iterator[LabelRequirement]:
        """All conditions as requirements, those of `matchLabels` first, by key."""
        for key in sorted(self.match_labels):
            yield LabelRequirement(key=key, operator="In", values=(self.match_labels[key],))
        yield from self.match_expressions

    def keys(self) -> set[str]:
        return set(self.match_labels) | {item.key for item in self.match_expressions}

    @property
    def empty(self) -> bool:
        return not self.match_labels and not self.match_expressions

    def same(self, other: "LabelSelector") -> bool:
        """Whether the other has the same requirements, in whichever form and order."""
        return self._distinct() == other._distinct()

    def _distinct(self) -> set[tuple[str, str, frozenset[str]]]:
        return {(item.key, item.operator, frozenset(item.values)) for item in self.requirements()}

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            item.matches(labels) for item in self.match_expressions
        )

    def node_selector_terms(self) -> list[dict[str, Any]]:
        """The `matchExpressions` of one required nodeSelectorTerm."""
        return [expression(item.key, item.operator, *item.values) for item in self.requirements()]

    def __str__(self) -> str:
        """The format of kubectl's --selector."""
        parts = [f"{key}={self.match_labels[key]}" for key in sorted(self.match_labels)]
        for item in self.match_expressions:
            match item.operator:
                case "In":
                    parts.append(f"{item.key} in ({','.join(item.values)})")
                case "NotIn":
                    parts.append(f"{item.key} notin ({','.join(item.values)})")
                case "Exists":
                    parts.append(item.key)
                case "DoesNotExist":
                    parts.append(f"!{item.key}")
        return ",".join(parts)
