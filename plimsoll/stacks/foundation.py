"""The foundation stack: CRDs, the controller's service account, deletion protection, and the controller."""

from collections.abc import Mapping
from typing import Any, Final, cast

import pulumi

from plimsoll.components import (
    FOUNDATION_GUARD,
    RESTRICTED,
    Controller,
    ControllerArgs,
    Foundation,
    FoundationArgs,
    Guard,
)
from plimsoll.stacks.settings import Settings

_OF_FOUNDATION: Final = ("serviceAccountAnnotations", "service_account_annotations")
"""Spellings of the one setting of a controller that is an argument of the Foundation, which creates the account."""


def declare(settings: Settings, values: Mapping[str, Any]) -> None:
    """Declares the resources of `values`; `settings` is the parsed form of `values`."""
    args: FoundationArgs = {"trigger_namespace": settings.trigger_namespace}
    if settings.served_namespaces is not None:
        args["served_namespaces"] = [*settings.served_namespaces]
    if settings.controller is not None:
        args["labels"] = {**RESTRICTED}
        controller = dict(values["controller"])
        annotations = [controller.pop(name) for name in _OF_FOUNDATION if name in controller]
        if any(annotations):
            args["service_account_annotations"] = annotations[0]
    foundation = Foundation("plimsoll", args)
    made: list[pulumi.Resource] = [foundation]
    if settings.controller is not None:
        made.append(
            Controller(
                "controller", cast("ControllerArgs", controller), pulumi.ResourceOptions(depends_on=[foundation])
            )
        )
    # The Foundation's own guard does not depend on the controller, which a destroy would delete before it is refused.
    # Declared in any case, so that a controller can be removed while an Environment exists.
    Guard(
        "plimsoll-foundation-stack",
        FOUNDATION_GUARD,
        pulumi.ResourceOptions(depends_on=made),
    )
    pulumi.export("namespace", foundation.namespace)
    pulumi.export("serviceAccount", foundation.service_account)
