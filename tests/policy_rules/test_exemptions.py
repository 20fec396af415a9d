"""Exemptions expire and cover only what they name; severities and options are settings."""

import datetime
from typing import Any

import pytest

from plimsoll.errors import PlimsollError
from plimsoll.model.api import Exemption, Policies
from plimsoll.policy import Checker, PolicyContext, settled
from tests.policy_rules.manifests import ASKED, TODAY, a_pod, broken, findings

DAY = datetime.timedelta(days=1)


def exempt(until: datetime.date = TODAY, **which: str) -> dict[str, Any]:
    return {"rule": "image-tag-pinned", "reason": "until the registry moves", "until": until.isoformat(), **which}


@pytest.mark.parametrize(
    ("which", "covers"),
    [
        ({"name": "train"}, True),
        ({"name": "tra*"}, True),
        ({"namespace": "research"}, True),
        ({"kind": "Pod", "namespace": "res*", "name": "train"}, True),
        ({"kind": "Deployment"}, False),
        ({"name": "trai"}, False),
        ({"name": "rain*"}, False),
        ({"namespace": "production"}, False),
    ],
)
def test_an_exemption_covers_the_objects_that_it_names(which: dict[str, Any], covers: bool) -> None:
    assert (broken(a_pod(image="a"), exemptions=[exempt(**which)]) == []) == covers


def test_an_exemption_covers_only_its_rule() -> None:
    pod = a_pod({"gpu-fraction": "1.5"}, image="a")
    assert [rule for rule, _ in broken(pod, exemptions=[exempt(name="train")])] == ["gpu-share-fraction"]


def test_an_exemption_past_its_date_is_a_finding_and_covers_nothing() -> None:
    ended = exempt(TODAY - DAY, name="train")
    assert broken(a_pod(image="a"), exemptions=[ended]) == [
        ("image-tag-pinned", "spec.containers[0].image"),
        ("exemption-expired", "exemptions[0].until"),
    ]
    (found,) = findings(a_pod(), exemptions=[ended])
    assert (found.severity, found.kind, found.name) == ("warning", "Exemption", "train")
    assert all(each in found.message for each in ("image-tag-pinned", "2026-06-30", "(until the registry moves)"))


def test_exempted_findings_are_reported() -> None:
    policies = Policies.model_validate({"rules": ASKED, "exemptions": [exempt(name="train")]})
    report = Checker(PolicyContext(), policies, TODAY).check([a_pod(image="a")])
    assert [(each.finding.rule, each.exemption.reason) for each in report.exempted] == [
        ("image-tag-pinned", "until the registry moves")
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"rule": "a", "reason": "b", "until": "2027-01-01"},
        {"rule": "a", "until": "2027-01-01", "name": "n"},
        {"rule": "a", "reason": "b", "name": "n"},
        {"rule": "a", "reason": "", "until": "2027-01-01", "name": "n"},
        {"rule": "a", "reason": "b", "until": "some day", "name": "n"},
    ],
)
def test_an_exemption_needs_objects_a_reason_and_a_date(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        Exemption.model_validate(wrong)


def test_a_severity_is_a_setting() -> None:
    (found,) = findings(a_pod(image="a"), rules={"image-tag-pinned": {"severity": "warning"}})
    assert found.severity == "warning"
    assert findings(a_pod(image="a"), rules={"image-tag-pinned": {"severity": "off"}}) == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rules": {"image-tag": {}}}, "there is no rule 'image-tag'"),
        ({"exemptions": [{**exempt(name="a"), "rule": "image"}]}, "exemptions: there is no rule 'image'"),
        (
            {"rules": {"node-pool-consolidation": {"options": {"minimum": 5}}}},
            "node-pool-consolidation: minimum: unknown",
        ),
        ({"rules": {"image-digest": {"options": {"required": "true"}}}}, "image-digest: required"),
        ({"rules": {"node-pool-consolidation": {"options": {"minimumSeconds": "5"}}}}, "minimumSeconds: must be a"),
    ],
)
def test_settings_of_an_unknown_rule_are_an_error(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(PlimsollError, match=words):
        settled(Policies.model_validate(settings))
