"""NodePool: the nodes that Karpenter may launch."""

import pulumi

from plimsoll.components.args import NodePoolArgs
from plimsoll.components.declaring import Component, ObjectType, name_of, uid_of
from plimsoll.labels import NODEPOOL
from plimsoll.model.karpenter import NodePoolSpec


class NodePool(Component):
    """A NodePool (karpenter.sh/v1) whose consolidation waits until the GPUs of a new node are discovered.

    `node_pool` is the object. Raises InvalidArgumentError if an argument is invalid, or a label or annotation contains
    a time or a hash.
    """

    node_pool_name: pulumi.Output[str]
    """Name of the object."""
    uid: pulumi.Output[str]
    """UID of the object; empty in the preview of its creation."""
    node_labels: pulumi.Output[dict[str, str]]
    """The label that selects its nodes."""

    def __init__(self, name: str, args: NodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("NodePool", name, args, opts)
        self.node_pool = self._object(ObjectType("karpenter.sh/v1", "NodePool"), NodePoolSpec, NodePoolSpec.manifest)
        self.node_pool_name = name_of(self.node_pool, args.get("name"))
        self.uid = uid_of(self.node_pool)
        self.node_labels = self.node_pool_name.apply(lambda known: {NODEPOOL: known})
        self.register_outputs({"nodePoolName": self.node_pool_name, "uid": self.uid, "nodeLabels": self.node_labels})
