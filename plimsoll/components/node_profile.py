"""NodeProfile: what nodes of an instance type in a NodePool offer."""

import pulumi

from plimsoll.components.args import NodeProfileArgs
from plimsoll.components.declaring import Component, ObjectType, name_of, uid_of
from plimsoll.labels import API_VERSION
from plimsoll.model.api import NodeProfileSpec


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
