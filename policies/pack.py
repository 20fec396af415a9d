"""The pack: every policy with its name, its level and its configuration."""

from pulumi_policy import EnforcementLevel, PolicyPack

from policies import instance_types, node_claims, queues


def pack() -> PolicyPack:
    """Serves the policies to the engine until it ends. Each may be set to another level by configuration."""
    return PolicyPack(
        name="plimsoll",
        enforcement_level=EnforcementLevel.MANDATORY,
        policies=[*instance_types.policies(), *queues.policies(), *node_claims.policies()],
    )
