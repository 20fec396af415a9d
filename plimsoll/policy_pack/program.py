"""The pack: every rule with its level and its configuration."""

from pulumi_policy import EnforcementLevel, PolicyPack

from plimsoll.policy_pack.rules import policies


def pack() -> PolicyPack:
    """Serves the policies to the engine until it ends. Each may be set to another level by configuration."""
    return PolicyPack(name="plimsoll", enforcement_level=EnforcementLevel.MANDATORY, policies=policies())
