"""A Workspace names an instance type exactly where nodes are provisioned, a partition only where they are brought."""

from collections.abc import Mapping
from typing import Any

from pulumi_policy import (
    Policy,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)

from plimsoll.model.mode import PARTITION_FORBIDDEN, instance_type_violation
from policies.modes import Mode, configured_mode, declared_mode, mode_schema
from policies.resources import WORKSPACE, object_name, section


def policies() -> list[Policy]:
    return [
        ResourceValidationPolicy(
            name="workspace-instance-type",
            description="Instance types are forbidden where nodes are brought, required where they are provisioned "
            "(mode from the configuration).",
            validate=instance_type_fits_configured_mode,
            config_schema=mode_schema(),
        ),
        StackValidationPolicy(
            name="workspace-instance-type-in-stack",
            description="Instance types are forbidden where nodes are brought, required where they are provisioned "
            "(mode from the stack's Environment).",
            validate=instance_type_fits_declared_mode,
            config_schema=mode_schema(),
        ),
    ]


def instance_type_fits_configured_mode(args: ResourceValidationArgs, report_violation: ReportViolation) -> None:
    mode = configured_mode(args.get_config())
    if args.resource_type == WORKSPACE and mode is not None:
        violation = _violation(args.props, args.name, mode)
        if violation:
            report_violation(violation, args.urn)


def instance_type_fits_declared_mode(args: StackValidationArgs, report_violation: ReportViolation) -> None:
    if configured_mode(args.get_config()) is not None:
        return
    mode = declared_mode(args.resources)
    if mode is None:
        return
    for resource in args.resources:
        if resource.resource_type == WORKSPACE:
            violation = _violation(resource.props, resource.name, mode)
            if violation:
                report_violation(violation, resource.urn)


def _violation(props: Mapping[str, Any], name: str, mode: Mode) -> str | None:
    resource = section(props, "spec", "resource")
    text = instance_type_violation(resource.get("instanceType"), auto_provisioning=mode.auto_provisioning)
    if text is None and mode.auto_provisioning and resource.get("partition"):
        text = PARTITION_FORBIDDEN
    return f"Workspace {object_name(props, name)}: {text}" if text else None
