"""The policy pack: the rules, checked in each preview and update of a stack."""

from plimsoll.policy_pack.program import pack
from plimsoll.policy_pack.rules import IN_STACK, check_resource, check_stack, policies
from plimsoll.policy_pack.settings import config_schema

__all__ = [
    "IN_STACK",
    "check_resource",
    "check_stack",
    "config_schema",
    "pack",
    "policies",
]
