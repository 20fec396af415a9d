"""The mode of the environment that a stack belongs to: from the pack's configuration, else from the stack itself."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from pulumi_policy import PolicyConfigSchema, PolicyResource

from policies.resources import ENVIRONMENT, section

MODE_CONFIG: Final[dict[str, dict[str, Any]]] = {
    "nodeAutoProvisioning": {"type": "string", "enum": ["enabled", "disabled"]},
    "provisioner": {"type": "string", "enum": ["byo", "nodeclaim", "trigger-pod"]},
}
"""Absent: as the Environment of the stack says; a capacity stack has none and needs the configuration."""


class Mode(NamedTuple):
    auto_provisioning: bool
    provisioner: str


def mode_schema() -> PolicyConfigSchema:
    return PolicyConfigSchema(properties=MODE_CONFIG)


def mode_of(spec: Mapping[str, Any]) -> Mode:
    """From an Environment's spec, or from a configuration with the same two fields."""
    provisioner = spec.get("provisioner")
    enabled = spec.get("nodeAutoProvisioning") == "enabled" or (
        "nodeAutoProvisioning" not in spec and provisioner not in (None, "byo")
    )
    return Mode(enabled, str(provisioner or ("nodeclaim" if enabled else "byo")))


def configured_mode(config: Mapping[str, Any]) -> Mode | None:
    """The mode that the pack's configuration says; None where it leaves that to the stack."""
    return mode_of(config) if any(config.get(name) for name in MODE_CONFIG) else None


def declared_mode(resources: Iterable[PolicyResource]) -> Mode | None:
    """The mode of the Environment among a stack's resources; None where there is none."""
    for resource in resources:
        if resource.resource_type == ENVIRONMENT:
            return mode_of(section(resource.props, "spec"))
    return None
