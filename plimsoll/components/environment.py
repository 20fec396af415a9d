"""Environment: the settings of a cluster."""

import pulumi
from pydantic import field_validator

from plimsoll.components.args import EnvironmentArgs
from plimsoll.components.declaring import Component, ObjectType, name_of, uid_of
from plimsoll.errors import PlimsollError
from plimsoll.labels import API_VERSION
from plimsoll.model.api import EnvironmentSpec, Policies
from plimsoll.policy import settled


class _SettledSpec(EnvironmentSpec):
    """The spec, with the rules' own checks of their settings. The cluster and the controller cannot refuse them."""

    @field_validator("policies")
    @classmethod
    def _settled(cls, policies: Policies) -> Policies:
        try:
            settled(policies)
        except PlimsollError as error:
            raise ValueError("; ".join(filter(None, (error.message, error.hint)))) from None
        return policies


class Environment(Component):
    """An Environment (plimsoll.dev/v1alpha1, cluster-scoped). The cluster refuses to delete it while capacity that the
    controller created for it exists.

    `environment` is the object. Raises InvalidArgumentError if an argument is invalid.
    """

    environment_name: pulumi.Output[str]
    """Name of the object."""
    uid: pulumi.Output[str]
    """UID of the object; empty in the preview of its creation."""

    def __init__(self, name: str, args: EnvironmentArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Environment", name, args, opts)
        kind = ObjectType(API_VERSION, "Environment")
        self.environment = self._object(kind, _SettledSpec, _SettledSpec.manifest)
        self.environment_name = name_of(self.environment, args.get("name"))
        self.uid = uid_of(self.environment)
        self.register_outputs({"environmentName": self.environment_name, "uid": self.uid})
