"""The configuration of one rule in the pack: its options, and exemptions from it."""

from collections.abc import Mapping
from typing import Any, Final

from pulumi_policy import PolicyConfigSchema

from plimsoll.model.api import Policies
from plimsoll.policy import Rule

EXEMPTIONS: Final = "exemptions"

_EXEMPTION: Final = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("kind", "namespace", "name", "reason", "until")},
    "required": ["reason", "until"],
}


def config_schema(rule: Rule) -> PolicyConfigSchema:
    """The options of the rule, and `exemptions` without its name."""
    properties = {
        name: _without_null(each)
        for name, each in rule.options.model_json_schema(by_alias=True).get("properties", {}).items()
    }
    return PolicyConfigSchema(properties={**properties, EXEMPTIONS: {"type": "array", "items": _EXEMPTION}})


def policies_of(rule: Rule, config: Mapping[str, Any]) -> Policies:
    """What the configuration of a rule sets, as an Environment would. Raises ValidationError."""
    options = {name: value for name, value in config.items() if name != EXEMPTIONS and value is not None}
    exemptions = [{**each, "rule": rule.id} for each in config.get(EXEMPTIONS) or ()]
    return Policies.model_validate({"rules": {rule.id: {"options": options}}, EXEMPTIONS: exemptions})


def _without_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The engine asks for one type of each option."""
    some = next((each for each in schema.get("anyOf", ()) if each.get("type") != "null"), schema)
    return {key: value for key, value in some.items() if key in ("type", "enum", "items", "minimum", "maximum")}
