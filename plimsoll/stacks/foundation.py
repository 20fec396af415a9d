"""The foundation stack: CRDs, the controller's service account, deletion protection, and the controller."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pydantic.alias_generators import to_snake

from plimsoll.components import RESTRICTED, Controller, Foundation, FoundationArgs
from plimsoll.stacks.settings import Settings


def declare(settings: Settings, values: Mapping[str, Any]) -> None:
    """Declares the resources of `values`; `settings` is the parsed form of `values`."""
    args: FoundationArgs = {"trigger_namespace": settings.trigger_namespace}
    if settings.controller is not None:
        args["labels"] = {**RESTRICTED}
        given = {to_snake(key): value for key, value in values["controller"].items()}
        if given.get("service_account_annotations"):
            args["service_account_annotations"] = given["service_account_annotations"]
    foundation = Foundation("plimsoll", args)
    if settings.controller is not None:
        Controller("controller", values["controller"], pulumi.ResourceOptions(depends_on=[foundation]))
    pulumi.export("namespace", foundation.namespace)
    pulumi.export("serviceAccount", foundation.service_account)
