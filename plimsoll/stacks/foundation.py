"""The foundation stack: CRDs, the controller's service account, deletion protection, and the controller."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pydantic.alias_generators import to_snake

from plimsoll.components import RESTRICTED, Controller, Foundation, FoundationArgs, Guard
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
    made: list[pulumi.Resource] = [foundation]
    if settings.controller is not None:
        made.append(Controller("controller", values["controller"], pulumi.ResourceOptions(depends_on=[foundation])))
    # The Foundation's own guard does not depend on the controller, which a destroy would delete before it is refused.
    # Declared in any case, so that a controller can be removed while an Environment exists.
    Guard(
        "plimsoll-foundation-stack",
        {
            "layer": "foundation",
            "explanation": "Cannot be deleted while an Environment exists: run `plimsoll destroy`.",
        },
        pulumi.ResourceOptions(depends_on=made),
    )
    pulumi.export("namespace", foundation.namespace)
    pulumi.export("serviceAccount", foundation.service_account)
