"""Karpenter's NodePool (karpenter.sh/v1), as observed."""

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import Field, ValidationError
from pydantic.aliases import AliasPath

from plimsoll.labels import SPEC_HASH
from plimsoll.model.karpenter.requirements import allowed_types, allowed_values, forbidding, requirements_of
from plimsoll.model.meta import Condition, NodeRequirement, ObservedObject, Taint, condition_of, condition_text


class NodePool(ObservedObject):
    replicas: int | None = Field(default=None, validation_alias=AliasPath("spec", "replicas"))
    weight: int = Field(default=0, validation_alias=AliasPath("spec", "weight"))
    limits: dict[str, str | int | float] = Field(default_factory=dict, validation_alias=AliasPath("spec", "limits"))
    template_labels: dict[str, str] = Field(
        default_factory=dict, validation_alias=AliasPath("spec", "template", "metadata", "labels")
    )
    template_spec: dict[str, Any] = Field(default_factory=dict, validation_alias=AliasPath("spec", "template", "spec"))
    conditions: tuple[Condition, ...] = Field(default=(), validation_alias=AliasPath("status", "conditions"))
    used: dict[str, str | int | float] = Field(default_factory=dict, validation_alias=AliasPath("status", "resources"))
    """Resources of the pool's nodes, as Karpenter counts them against `limits`."""

    @property
    def unready(self) -> str:
        """Why Karpenter creates no nodes from it for now: `Reason: message` of its condition Ready. Empty if that is
        True, or missing, as in files."""
        ready = condition_of(self.conditions, "Ready")
        return "" if ready is None or ready.status == "True" else condition_text(ready) or f"Ready is {ready.status}"

    @property
    def spec_hash(self) -> str:
        return self.annotations.get(SPEC_HASH, "")

    @property
    def requirements(self) -> list[dict[str, Any]]:
        return requirements_of(self.template_spec)

    @property
    def taints(self) -> tuple[Taint, ...]:
        """Taints of initialized nodes, without startup taints. Invalid ones are ignored."""
        given = self.template_spec.get("taints")
        found = []
        for each in given if isinstance(given, list) else ():
            try:
                found.append(Taint.model_validate(each))
            except ValidationError:
                continue
        return tuple(found)

    @property
    def allowed_values(self) -> dict[str, tuple[str, ...]]:
        """Values by label that the requirements allow by `In`."""
        return allowed_values(self.template_spec)

    def forbids(self, wanted: Mapping[str, Collection[str]]) -> NodeRequirement | None:
        """The requirement, or label of the template, that allows none of the values that are wanted of its label; None
        if there is none."""
        labels = ({"key": key, "operator": "In", "values": [value]} for key, value in self.template_labels.items())
        return forbidding([*labels, *self.requirements], wanted)

    @property
    def instance_types(self) -> tuple[str, ...]:
        """Instance types that the requirements allow by `In`; empty if they name none."""
        return allowed_types(self.template_spec)

    @property
    def node_class_group(self) -> str:
        """The API group of its node class, which determines the cloud; empty without one."""
        return (self.node_class_ref or {}).get("group", "")

    @property
    def node_class_ref(self) -> dict[str, str] | None:
        """`group`, `kind` and `name`; None where one of the first two is missing: the cluster takes any object here."""
        reference = self.template_spec.get("nodeClassRef")
        if not isinstance(reference, dict) or not {"group", "kind"} <= reference.keys():
            return None
        return {key: str(reference[key]) for key in ("group", "kind", "name") if key in reference}
