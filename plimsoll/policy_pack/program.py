"""The policy pack: every rule with its enforcement level and its configuration."""

from pulumi_policy import EnforcementLevel, PolicyPack

from plimsoll.policy_pack.rules import policies


def pack() -> PolicyPack:
    """Serves the policies to the Pulumi engine. The configuration can set another enforcement level for each."""
    return PolicyPack(name="plimsoll", enforcement_level=EnforcementLevel.MANDATORY, policies=policies())
