"""The provisioners `capacity-buffer` and `provisioning-request`: one object for nodes that are alike."""

from collections.abc import Collection, Sequence
from functools import partial

import orjson

from plimsoll.model import DemandRef
from plimsoll.model.api import DemandProvisioner as Setting
from plimsoll.model.api import Environment
from plimsoll.model.karpenter import CapacityBuffer, ProvisioningRequest
from plimsoll.plan.demand import Demand, PlannedNode
from plimsoll.plan.owned import Asking, Delta
from plimsoll.plan.requests.asked import Asked, read_asked
from plimsoll.plan.requests.batches import (
    Manifest,
    batch_name,
    batches,
    capacity_buffer,
    of_demand,
    pod_template,
    provisioning_request,
)
from plimsoll.plan.requests.node_ask import CAME, GIVEN_UP, LOST
from plimsoll.plan.requests.provisioner import Names
from plimsoll.text import counted


class BatchProvisioner:
    def __init__(self, environment: Environment, names: Names) -> None:
        self._environment = environment
        self._names = names
        self._buffers = environment.spec.demand.provisioner is Setting.CAPACITY_BUFFER

    def makes(self, thing: Asking) -> bool:
        return isinstance(thing, CapacityBuffer if self._buffers else ProvisioningRequest)

    def ask(self, demand: Demand, nodes: Sequence[PlannedNode], attempt: int, delta: Delta) -> int:
        owner = DemandRef(name=demand.name)
        asked = batches(nodes)
        for ask, count in asked:
            prefix = "gpu-buffer" if self._buffers else "gpu-request"
            name = self._names.new(demand.name, ask, partial(batch_name, prefix))
            metadata = of_demand(self._environment, demand.name, ask, name, attempt)
            reason = f"pods of demand {demand.name} lack {counted(count, 'node')}"
            delta.create(pod_template(self._environment, metadata, ask, demand.of.placement), owner, reason)
            delta.create(self._manifest(metadata, count), owner, reason)
        return len(asked)

    def keep(self, asked: Asked, needed: int, came: Collection[str], delta: Delta) -> None:
        """A buffer shrinks as its nodes come, before the pods take them: else it would be filled again.

        It shrinks by what does not come as well. A request cannot: it is noted on it what is not awaited any more.
        """
        known = read_asked(asked.thing)
        shrinks = isinstance(asked.thing, CapacityBuffer) and needed != asked.thing.replicas
        if not (came or shrinks or known is None or known.given_up != asked.given_up):
            return
        count = needed if self._buffers else asked.outstanding + len(asked.came) + asked.given_up
        manifest = self._manifest(self._metadata(asked), count)
        reason = f"{counted(len(came), 'node')} came" if came else f"{counted(needed, 'node')} still needed"
        delta.update(manifest, DemandRef(name=asked.demand), reason)

    def disarm(self, asked: Asked, came: Collection[str], delta: Delta) -> None:
        """Nothing: its deletion says all."""

    def _metadata(self, asked: Asked) -> Manifest:
        """With what became of the nodes."""
        metadata = of_demand(self._environment, asked.demand, asked.ask, asked.name, asked.attempt)
        names = {CAME: asked.came, LOST: asked.lost}
        noted = {key: orjson.dumps(list(each)).decode() for key, each in names.items() if each}
        noted |= {GIVEN_UP: str(asked.given_up)} if asked.given_up else {}
        return {**metadata, "annotations": {**metadata["annotations"], **noted}}

    def _manifest(self, metadata: Manifest, count: int) -> Manifest:
        return (capacity_buffer if self._buffers else provisioning_request)(metadata, count)
