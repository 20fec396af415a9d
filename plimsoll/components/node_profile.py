"""NodeProfile: what nodes of an instance type in a NodePool offer."""

from collections.abc import Sequence
from typing import Required, TypedDict

import pulumi

from plimsoll.components.declaring import Component, ObjectArgs, ObjectType, name_of, uid_of
from plimsoll.labels import API_VERSION
from plimsoll.model.api import NodeProfileSpec


class ClaimDevicesArgs(TypedDict, total=False):
    """Devices that are alike, which a driver of Dynamic Resource Allocation will publish of each such node."""

    driver: Required[pulumi.Input[str]]
    """Such as `gpu.nvidia.com`."""
    count: pulumi.Input[int]
    """Devices of one node. Absent: the GPUs that the catalog has for the instance type."""
    strings: pulumi.Input[dict[str, pulumi.Input[str]]]
    """Attributes of text, by which claims select them, such as `productName`."""
    versions: pulumi.Input[dict[str, pulumi.Input[str]]]
    """Attributes that are semantic versions, such as `cudaComputeCapability`."""
    ints: pulumi.Input[dict[str, pulumi.Input[int]]]
    """Attributes that are whole numbers."""
    bools: pulumi.Input[dict[str, pulumi.Input[bool]]]
    """Attributes that are true or false."""
    capacity: pulumi.Input[dict[str, pulumi.Input[str]]]
    """What each has, such as `memory`."""
    distinct_attributes: pulumi.Input[Sequence[pulumi.Input[str]]]
    """Attributes that each device of a node has with a value of its own, such as `uuid`."""


class NodeProfileArgs(ObjectArgs, total=False):
    """Nodes of an instance type in a NodePool, as they are declared. NodePool and type cannot be changed later."""

    node_pool: pulumi.Input[str]
    """Name of the NodePool: `node_pool_name` of a NodePool."""
    instance_type: pulumi.Input[str]
    labels: pulumi.Input[dict[str, pulumi.Input[str]]]
    """Labels that discovery will write on such nodes, such as `nvidia.com/gpu.product`."""
    allocatable: pulumi.Input[dict[str, pulumi.Input[str]]]
    """Allocatable amounts of such nodes, such as `cpu`, `memory`, `pods`, `ephemeral-storage`."""
    claim_devices: pulumi.Input[ClaimDevicesArgs]
    """GPUs that pods get by claims (Dynamic Resource Allocation), where no device plugin announces them."""


class NodeProfile(Component):
    """A NodeProfile (plimsoll.dev/v1alpha1), `node_profile`. Deleting it forgets what the controller learned, too.

    Raises InvalidArgumentError if an argument is invalid.
    """

    node_profile_name: pulumi.Output[str]
    """Name of the object."""
    uid: pulumi.Output[str]
    """UID of the object; empty in the preview of its creation."""

    def __init__(self, name: str, args: NodeProfileArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("NodeProfile", name, args, opts)
        self.node_profile = self._object(
            ObjectType(API_VERSION, "NodeProfile"), NodeProfileSpec, NodeProfileSpec.manifest
        )
        self.node_profile_name = name_of(self.node_profile, args.get("name"))
        self.uid = uid_of(self.node_profile)
        self.register_outputs({"nodeProfileName": self.node_profile_name, "uid": self.uid})
