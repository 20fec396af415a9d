"""DeviceClass: devices by which claims ask for them (Dynamic Resource Allocation)."""

import pulumi

from plimsoll.components.args import DeviceClassArgs
from plimsoll.components.declaring import Component, ObjectType, name_of, uid_of
from plimsoll.model.dra import DeviceClassSpec


class DeviceClass(Component):
    """A DeviceClass (resource.k8s.io/v1), `device_class`. Raises InvalidArgumentError if an argument is invalid."""

    device_class_name: pulumi.Output[str]
    """Name of the object: `device_class_name` of a request."""
    uid: pulumi.Output[str]
    """UID of the object; empty in the preview of its creation."""

    def __init__(self, name: str, args: DeviceClassArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("DeviceClass", name, args, opts)
        self.device_class = self._object(
            ObjectType("resource.k8s.io/v1", "DeviceClass"), DeviceClassSpec, DeviceClassSpec.manifest
        )
        self.device_class_name = name_of(self.device_class, args.get("name"))
        self.uid = uid_of(self.device_class)
        self.register_outputs({"deviceClassName": self.device_class_name, "uid": self.uid})
