"""The provisioner `trigger-pod`: a pod for each planned node, armed while its node is to come."""

from collections.abc import Collection, Sequence
from typing import Final

from plimsoll.model import DemandRef, ObjectKey, SignalReason
from plimsoll.model.api import Environment
from plimsoll.model.cluster import Pod
from plimsoll.plan.demand import Demand, PlannedNode
from plimsoll.plan.owned import Asking, Delta, key_of, signalled
from plimsoll.plan.requests.asked import READY_WORDS, Asked
from plimsoll.plan.requests.node_ask import NodeAsk
from plimsoll.plan.requests.provisioner import Names
from plimsoll.plan.requests.triggers import trigger_name, trigger_pod
from plimsoll.text import counted

ARMED: Final = "asks for a node of these GPUs; never to be scheduled"


class TriggerPodProvisioner:
    def __init__(self, environment: Environment, names: Names) -> None:
        self._environment = environment
        self._names = names

    def makes(self, thing: Asking) -> bool:
        return isinstance(thing, Pod)

    def ask(self, demand: Demand, nodes: Sequence[PlannedNode], attempt: int, delta: Delta) -> int:
        for node in nodes:
            name = self._names.new(demand.name, NodeAsk.of(node), trigger_name)
            manifest = trigger_pod(demand, node, self._environment, name, attempt)
            reason = f"{counted(len(node.pods), 'pod')} of demand {demand.name} fit no node"
            delta.create(manifest, DemandRef(name=demand.name), reason)
            delta.signal(ObjectKey.of(manifest), "", SignalReason.UNSCHEDULABLE, ARMED)
        return len(nodes)

    def keep(self, asked: Asked, needed: int, came: Collection[str], delta: Delta) -> None:
        self.disarm(asked, came, delta)
        if asked.outstanding and signalled(asked.thing) != SignalReason.UNSCHEDULABLE:
            # The arming after its creation did not come about, or somebody has written over it.
            delta.signal(key_of(asked.thing), asked.thing.uid, SignalReason.UNSCHEDULABLE, ARMED)

    def disarm(self, asked: Asked, came: Collection[str], delta: Delta) -> None:
        for node in came:
            delta.signal(key_of(asked.thing), asked.thing.uid, SignalReason.CAPACITY_READY, READY_WORDS + node)
