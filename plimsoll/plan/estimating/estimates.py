"""Estimates under the settings of one environment."""

from dataclasses import replace

from plimsoll.model.api import EstimatorSettings
from plimsoll.model.cluster import NodeGpus
from plimsoll.plan.estimating.estimator import Estimate, Infeasible, Need, Settings, estimate


def settings_of(declared: EstimatorSettings) -> Settings:
    """The formula's settings: the declared ones, and defaults for the others."""
    return Settings(**declared.model_dump(exclude_none=True))


class Estimates:
    """Caches estimates: many Workspaces use few models on few kinds of nodes."""

    def __init__(self, declared: EstimatorSettings) -> None:
        self.settings = settings_of(declared)
        self._made: dict[tuple[Need, NodeGpus, int | None], Estimate | Infeasible] = {}

    def with_context(self, context_length: int | None) -> Settings:
        """The settings for a Workspace; `context_length` is that of the Workspace, in tokens."""
        return self.settings if context_length is None else replace(self.settings, context_length=context_length)

    def of(self, need: Need, gpus: NodeGpus, context_length: int | None = None) -> Estimate | Infeasible:
        """GPUs and nodes that one replica needs on nodes with these GPUs."""
        key = (need, gpus, context_length)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = estimate(need, gpus, self.with_context(context_length))
        return found
