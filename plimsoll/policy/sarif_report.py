"""Findings as SARIF 2.1.0 (OASIS), which code hosts show beside the lines of a change."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from plimsoll.model.meta import Severity
from plimsoll.policy.located import Located
from plimsoll.policy.rule import Rule

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning"}


def sarif(found: Sequence[Located], rules: Mapping[str, Rule], version: str) -> dict[str, Any]:
    """One run, with the metadata of all rules; `version` is Plimsoll's."""
    positions = {name: number for number, name in enumerate(rules)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "plimsoll",
                        "version": version,
                        "semanticVersion": version,
                        "rules": [_rule(rule) for rule in rules.values()],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(each, positions) for each in found],
            }
        ],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.id.split("-")),
        "shortDescription": {"text": rule.summary},
        "help": {"text": rule.remedy},
        "defaultConfiguration": ({"enabled": False} if rule.severity is None else {"level": _LEVELS[rule.severity]}),
        "properties": {"tags": [rule.family.value]},
    }


def _result(each: Located, positions: Mapping[str, int]) -> dict[str, Any]:
    finding = each.finding
    return {
        "ruleId": finding.rule,
        "ruleIndex": positions[finding.rule],
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(each.file)},
                    "region": {"startLine": each.line},
                },
                "logicalLocations": [
                    {"fullyQualifiedName": f"{finding.subject} {finding.field}".strip(), "kind": "object"}
                ],
            }
        ],
        "partialFingerprints": {"object/v1": f"{finding.rule}:{finding.subject}:{finding.field}"},
    }


def _uri(file: str) -> str:
    return quote(PurePath(file).as_posix())
