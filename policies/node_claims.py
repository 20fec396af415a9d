"""NodeClaims are declared only where the environment provisions by them.

Beside trigger pods they stall the cluster: Karpenter launches nothing while any NodeClaim lacks a provider's ID.
"""

from pulumi_policy import (
    Policy,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)

from policies.modes import Mode, configured_mode, declared_mode, mode_schema
from policies.resources import NODE_CLAIM


def policies() -> list[Policy]:
    return [
        ResourceValidationPolicy(
            name="node-claim-provisioner",
            description="No NodeClaim where the environment provisions otherwise (provisioner from the configuration).",
            validate=node_claim_fits_configured_provisioner,
            config_schema=mode_schema(),
        ),
        StackValidationPolicy(
            name="node-claim-provisioner-in-stack",
            description="No NodeClaim where the environment provisions otherwise (provisioner from the Environment).",
            validate=node_claims_fit_declared_provisioner,
            config_schema=mode_schema(),
        ),
    ]


def node_claim_fits_configured_provisioner(args: ResourceValidationArgs, report_violation: ReportViolation) -> None:
    mode = configured_mode(args.get_config())
    if args.resource_type == NODE_CLAIM and mode is not None and mode.provisioner != "nodeclaim":
        report_violation(_text(args.name, mode), args.urn)


def node_claims_fit_declared_provisioner(args: StackValidationArgs, report_violation: ReportViolation) -> None:
    if configured_mode(args.get_config()) is not None:
        return
    mode = declared_mode(args.resources)
    if mode is None or mode.provisioner == "nodeclaim":
        return
    for resource in args.resources:
        if resource.resource_type == NODE_CLAIM:
            report_violation(_text(resource.name, mode), resource.urn)


def _text(name: str, mode: Mode) -> str:
    return (
        f"NodeClaim {name}: this environment's provisioner is {mode.provisioner!r}, which makes no NodeClaims: "
        "remove it, or set the provisioner to 'nodeclaim'"
    )
