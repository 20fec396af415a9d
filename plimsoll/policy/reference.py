"""The rules as data: `plimsoll policy list`, and the reference page."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from plimsoll.policy.rule import Family, Rule
from plimsoll.policy.rule_set import RULES

_TITLES: Final = {
    Family.MODE: "Provisioning mode",
    Family.QUEUES: "Labels and queues",
    Family.SHARES: "GPU shares",
    Family.CLAIMS: "Claims of devices",
    Family.PODS: "Trigger and reservation pods",
    Family.BUDGETS: "Budgets",
    Family.NODE_POOLS: "NodePools",
    Family.SUPPLY_CHAIN: "Supply chain",
    Family.EXEMPTIONS: "Exemptions",
}


def described(rule: Rule) -> dict[str, Any]:
    """One rule, with the places that enforce it in addition to `plimsoll policy check`."""
    return {
        "rule": rule.id,
        "family": rule.family.value,
        "severity": rule.severity.value if rule.severity is not None else "off",
        "summary": rule.summary,
        "remedy": rule.remedy,
        "reads": list(rule.reads),
        "enforced": [name for name, there in _enforced(rule).items() if there],
        "options": {
            field.alias or name: _plain(field.get_default(call_default_factory=True))
            for name, field in rule.options.model_fields.items()
        },
    }


_HEAD: Final = """# Policies: the rules

This page lists every policy rule, for platform and security engineers who configure them. \
`plimsoll policy list --output markdown` generates it from the rules. The [guide](../guides/policies.md) shows how to \
configure rules, exempt objects and write your own.

## Summary

`plimsoll policy check` checks every rule. The column "enforced in" says where else a rule is enforced:

| Place | When |
|---|---|
| `pulumi` | by the policy pack, in a preview and an update |
| `controller` | by the controller, before a planned object is applied |
| `cluster` | at admission, by the foundation's ValidatingAdmissionPolicies. Of objects with a pod template: \
Pods with their ephemeral containers, Deployments, StatefulSets, DaemonSets, ReplicaSets, ReplicationControllers, Jobs \
and CronJobs; of others, such as JobSets and LeaderWorkerSets, the pods |

The severity `error` refuses an object there, and `warning` only reports it. A rule that is `off` is checked only if a \
setting names it.

Rules that compare an object with others, such as `queue-unknown`, `queue-not-leaf`, `queue-other-node-pool`, \
`queue-parent-other-node-pool` and `queue-without-node-pool`, have no form for admission: a CEL expression sees one \
object and the Environment, and objects of one change may arrive before the queue that they name. At runtime, demand \
is [refused by name](demand-nodes.md#kais-node-pools) instead: such pods get no node."""


def markdown() -> str:
    """The reference page: every rule, by family."""
    parts = [_HEAD]
    for family, title in _TITLES.items():
        rules = [rule for rule in RULES.values() if rule.family is family]
        if not rules:
            continue
        parts.append(f"\n## {title}\n\n| rule | severity | requires | remedy | reads | enforced in | options |")
        parts.append("|---|---|---|---|---|---|---|")
        parts += [_row(described(rule)) for rule in rules]
    return "\n".join(parts) + "\n"


def _row(rule: Mapping[str, Any]) -> str:
    options = ", ".join(f"`{name}`: {_shown(default)}" for name, default in rule["options"].items())
    cells = (
        f"`{rule['rule']}`",
        rule["severity"],
        rule["summary"],
        rule["remedy"],
        ", ".join(rule["reads"]),
        ", ".join(rule["enforced"]),
        options,
    )
    return f"| {' | '.join(cells)} |"


def _shown(default: Any) -> str:
    if default is None:
        return "absent"
    return f"`{orjson.dumps(default).decode()}`"


def _enforced(rule: Rule) -> Mapping[str, bool]:
    return {
        "pulumi": True,
        "controller": rule.loop and rule.check is not None,
        "cluster": rule.cel is not None,
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
