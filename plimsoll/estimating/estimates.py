"""Estimates under the settings of one environment."""

from plimsoll.estimating.estimator import Estimate, Infeasible, Need, estimate, serving_on
from plimsoll.estimating.settings import Settings
from plimsoll.model import Serving
from plimsoll.model.api import EstimatorSettings
from plimsoll.model.cluster import Device


def settings_of(declared: EstimatorSettings) -> Settings:
    """The formula's settings: the declared ones, and defaults for the others."""
    return Settings(**declared.model_dump(exclude_none=True))


class Estimates:
    """Caches estimates: many Workspaces use few models on few kinds of nodes."""

    def __init__(self, declared: EstimatorSettings) -> None:
        self.settings = settings_of(declared)
        self._made: dict[tuple[Need, Device, int | None], Estimate | Infeasible] = {}

    def of(self, need: Need, gpus: Device, context_length: int | None = None) -> Estimate | Infeasible:
        """GPUs and nodes that one replica needs on nodes with these GPUs; `context_length` is the Workspace's."""
        key = (need, gpus, context_length)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = estimate(need, gpus, self.settings, context_length)
        return found

    def serving(self, need: Need, gpus: Device, nodes: int, context_length: int | None = None) -> Serving:
        """How the server runs one replica on that many nodes."""
        outcome = self.of(need, gpus, context_length)
        if isinstance(outcome, Estimate) and outcome.nodes == nodes:
            return outcome.serving
        return serving_on(need, gpus, nodes, self.settings, context_length)
