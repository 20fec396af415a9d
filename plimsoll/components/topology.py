"""Topology: how the nodes of a cluster are connected, for KAI."""

import pulumi

from plimsoll.components.args import TopologyArgs
from plimsoll.components.declaring import Component, ObjectType, name_of, uid_of
from plimsoll.components.specs import TopologySpec


class Topology(Component):
    """A Topology (kai.scheduler/v1alpha1), `topology`. Raises InvalidArgumentError if an argument is invalid."""

    topology_name: pulumi.Output[str]
    """Name of the object: `topology` of a DataCache."""
    uid: pulumi.Output[str]
    """UID of the object; empty in the preview of its creation."""

    def __init__(self, name: str, args: TopologyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Topology", name, args, opts)
        kind = ObjectType("kai.scheduler/v1alpha1", "Topology")
        self.topology = self._object(kind, TopologySpec, TopologySpec.manifest)
        self.topology_name = name_of(self.topology, args.get("name"))
        self.uid = uid_of(self.topology)
        self.register_outputs({"topologyName": self.topology_name, "uid": self.uid})
