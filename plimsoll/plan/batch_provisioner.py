"""The provisioners `capacity-buffer` and `provisioning-request`: one object for nodes that are alike."""

from collections.abc import Collection, Sequence
from functools import partial

from plimsoll.model.capacity_buffer import CapacityBuffer
from plimsoll.model.demand_settings import DemandProvisioner as Setting
from plimsoll.model.environment import Environment
from plimsoll.model.owner import DemandRef
from plimsoll.model.provisioning_request import ProvisioningRequest
from plimsoll.plan.asked import Asked
from plimsoll.plan.asking import Asking
from plimsoll.plan.batch import (
    Manifest,
    batch_name,
    batches,
    capacity_buffer,
    of_demand,
    pod_template,
    provisioning_request,
)
from plimsoll.plan.delta import Delta
from plimsoll.plan.demand import Demand, PlannedNode
from plimsoll.plan.demand_provisioner import Names
from plimsoll.plan.shortlist import counted


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
            delta.create(self._manifest(metadata, count, ()), owner, reason)
        return len(asked)

    def keep(self, asked: Asked, needed: int, came: Collection[str], delta: Delta) -> None:
        """A buffer shrinks as its nodes come, before the pods take them: else it would be filled again."""
        thing = asked.thing
        shrinks = isinstance(thing, CapacityBuffer) and needed != thing.replicas
        if not (came or shrinks):
            return
        metadata = of_demand(self._environment, asked.demand, asked.ask, asked.name, asked.attempt)
        count = needed if self._buffers else asked.outstanding + len(asked.came)
        reason = f"{counted(len(came), 'node')} came" if came else f"{counted(needed, 'node')} still needed"
        delta.update(self._manifest(metadata, count, asked.came), DemandRef(name=asked.demand), reason)

    def disarm(self, asked: Asked, came: Collection[str], delta: Delta) -> None:
        """Nothing: its deletion says all."""

    def _manifest(self, metadata: Manifest, count: int, came: Sequence[str]) -> Manifest:
        return (capacity_buffer if self._buffers else provisioning_request)(metadata, count, came)
