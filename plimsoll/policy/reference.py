"""The rules as data for people: `plimsoll policy list`, and the page of the reference."""

from collections.abc import Mapping
from typing import Any, Final

from plimsoll.policy.rule import Family, Rule

_TITLES: Final = {
    Family.MODE: "Provisioning mode",
    Family.QUEUES: "Labels and queues",
    Family.SHARES: "GPU shares",
    Family.PODS: "Trigger and reservation pods",
    Family.BUDGETS: "Budgets",
    Family.NODE_POOLS: "NodePools",
    Family.SUPPLY_CHAIN: "Supply chain",
    Family.EXEMPTIONS: "Exemptions",
}


def described(rule: Rule) -> dict[str, Any]:
    """One rule, with where it is enforced beside `plimsoll policy check`."""
    return {
        "rule": rule.id,
        "family": rule.family.value,
        "severity": rule.severity.value,
        "summary": rule.summary,
        "remedy": rule.remedy,
        "reads": list(rule.reads),
        "enforced": [name for name, there in _enforced(rule).items() if there],
        "options": {
            field.alias or name: _plain(field.get_default(call_default_factory=True))
            for name, field in rule.options.model_fields.items()
        },
    }


def _enforced(rule: Rule) -> Mapping[str, bool]:
    return {
        "pulumi": rule.family is not Family.EXEMPTIONS,
        "loop": rule.loop and rule.check is not None,
        "cluster": rule.cel is not None,
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
