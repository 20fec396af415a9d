"""KAI's Topology (kai.scheduler/v1alpha1), and the annotations and affinity that place workloads by it."""

from typing import Annotated, Any, Final

from pydantic import Field, field_validator, model_validator

from plimsoll.labels import HOSTNAME, is_label_key
from plimsoll.model.meta import Declared

TOPOLOGY: Final = "kai.scheduler/topology"
"""Annotation of the topmost owner of a workload's pods: the name of the Topology."""
REQUIRED: Final = "kai.scheduler/topology-required-placement"
PREFERRED: Final = "kai.scheduler/topology-preferred-placement"
"""Annotations with a level of the Topology: all pods of the workload must be placed in one domain of the level
(required), or are if it has room (preferred)."""


class TopologyLevel(Declared):
    """One level: nodes whose label has the same value are near each other."""

    node_label: str
    """Label that every node has; nodes with the same value are near each other."""
    alias: str | None = None
    """Another name of the level for workloads."""

    @field_validator("node_label", "alias")
    @classmethod
    def _key(cls, key: str | None) -> str | None:
        if key is not None and not is_label_key(key):
            raise ValueError(f"{key!r} is not a label key")
        return key


class TopologySpec(Declared):
    """How the nodes of a cluster are connected. The labels of an existing Topology cannot be changed."""

    levels: Annotated[tuple[TopologyLevel, ...], Field(min_length=1, max_length=16)]
    """The widest first."""

    @model_validator(mode="after")
    def _once_and_in_order(self) -> "TopologySpec":
        labels = [level.node_label for level in self.levels]
        twice = sorted({label for label in labels if labels.count(label) > 1})
        if twice:
            raise ValueError(f"levels: {', '.join(twice)} is listed twice")
        if HOSTNAME in labels[:-1]:
            raise ValueError(f"levels: {HOSTNAME} can only be the last, lowest level")
        return self


class Placement(Declared):
    """Pods near which other pods are placed, and how near."""

    match_labels: Annotated[dict[str, str], Field(min_length=1)]
    """Labels of those pods."""
    topology_key: str
    """Label of nodes; nodes with the same value are near each other."""
    required: bool = True
    """Whether pods stay pending if there is no room near those pods; absent: true."""

    def with_affinity(self, pods: dict[str, Any]) -> dict[str, Any]:
        """The pod template with this pod affinity in addition to its own."""
        term: dict[str, Any] = {"topologyKey": self.topology_key, "labelSelector": {"matchLabels": self.match_labels}}
        name = f"{'required' if self.required else 'preferred'}DuringSchedulingIgnoredDuringExecution"
        entry = term if self.required else {"weight": 100, "podAffinityTerm": term}
        affinity = pods["spec"].get("affinity") or {}
        near = affinity.get("podAffinity") or {}
        placed = {**affinity, "podAffinity": {**near, name: [*(near.get(name) or ()), entry]}}
        return {**pods, "spec": {**pods["spec"], "affinity": placed}}
