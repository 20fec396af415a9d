"""The policy pack: what no preview and no update of a stack may declare."""

from plimsoll.policy_pack.program import pack
from plimsoll.policy_pack.rules import IN_STACK, judge_resource, judge_stack, policies
from plimsoll.policy_pack.settings import config_schema

__all__ = [
    "IN_STACK",
    "config_schema",
    "judge_resource",
    "judge_stack",
    "pack",
    "policies",
]
