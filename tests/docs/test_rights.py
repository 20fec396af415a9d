"""The tables of rights in SECURITY.md are those of the declared rules.

`PLIMSOLL_UPDATE_GOLDEN=1 pytest tests/docs/test_rights.py` writes the first of them anew.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from plimsoll.components import (
    CONTROLLER,
    CONTROLLER_ELSEWHERE,
    CONTROLLER_FOR_DEMAND,
    CONTROLLER_FOR_WORKSPACES,
    CONTROLLER_IN_ITS_NAMESPACE,
    RESERVATION,
    SHARE_BINDER,
    SHARE_BINDER_FOR_RESERVATIONS,
    SHARE_BINDER_IN_ITS_NAMESPACE,
    UI,
    UI_IN_ITS_NAMESPACE,
    Rule,
)
from tests.golden import UPDATE
from tests.pages import CHECKOUT

SECURITY: Final = CHECKOUT / "SECURITY.md"
BEGIN: Final = "<!-- rights: begin -->\n"
END: Final = "<!-- rights: end -->\n"
READ: Final = ("get", "list", "watch")
ROLES: Final[tuple[tuple[str, str, Sequence[Rule]], ...]] = (
    ("the controller, `plimsoll`", "all", CONTROLLER_ELSEWHERE),
    ("the controller, `plimsoll`", "all, or `servedNamespaces`", CONTROLLER_FOR_WORKSPACES),
    ("the controller, `plimsoll`", "its own", CONTROLLER_IN_ITS_NAMESPACE),
    ("the controller, `plimsoll`", "of trigger pods", CONTROLLER_FOR_DEMAND),
    ("the share binder, `plimsoll-bind`", "all", SHARE_BINDER),
    ("the share binder, `plimsoll-bind`", "its own", SHARE_BINDER_IN_ITS_NAMESPACE),
    ("the share binder, `plimsoll-bind`", "of reservations", SHARE_BINDER_FOR_RESERVATIONS),
    ("the probe in reservations", "of reservations", RESERVATION),
    ("the pages, `plimsoll-ui`", "all", UI),
    ("the pages, `plimsoll-ui`", "its own", UI_IN_ITS_NAMESPACE),
)
"""The account, the namespaces, and the rules."""
COMPARED: Final = {
    "pods": ("", ("pods",)),
    "nodes": ("", ("nodes",)),
    "NodeClaims": ("karpenter.sh", ("nodeclaims",)),
    "Deployments, StatefulSets": ("apps", ("deployments", "statefulsets")),
    "Services": ("", ("services",)),
    "ConfigMaps": ("", ("configmaps",)),
    "Jobs, PersistentVolumes": ("", ("jobs", "persistentvolumes")),
    "webhook configurations": ("admissionregistration.k8s.io", ("validatingwebhookconfigurations",)),
    "Secrets": ("", ("secrets",)),
}
"""The rows of the comparison with others: group and resources."""


def rows() -> Iterator[str]:
    """A row for each account, namespace and set of verbs."""
    for account, namespaces, rules in ROLES:
        by_verbs: dict[tuple[str, ...], list[str]] = {}
        for rule in rules:
            (group,) = rule["apiGroups"]
            suffix = f".{group}" if group else ""
            names = f" ({', '.join(rule['resourceNames'])})" if "resourceNames" in rule else ""
            found = by_verbs.setdefault(tuple(rule["verbs"]), [])
            found += [f"{resource}{suffix}{names}" for resource in rule["resources"]]
        for verbs, resources in by_verbs.items():
            yield f"| {account} | {namespaces} | {', '.join(verbs)} | {', '.join(resources)} |"


def table(text: str) -> str:
    return text.partition(BEGIN)[2].partition(END)[0]


def test_the_table_has_every_right_and_no_other() -> None:
    head = ["| Account | Namespaces | Verbs | Resources |", "|---|---|---|---|"]
    wanted = "\n".join([*head, *rows()]) + "\n"
    text = SECURITY.read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    if os.environ.get(UPDATE):
        SECURITY.write_text(text.replace(f"{BEGIN}{table(text)}{END}", f"{BEGIN}{wanted}{END}"))
    update = f"{UPDATE}=1 pytest {Path(__file__).relative_to(CHECKOUT)} writes it anew; review its diff"
    assert table(SECURITY.read_text()) == wanted, update


def verbs_on(rules: Sequence[Rule], group: str, resources: Sequence[str]) -> set[str]:
    return {
        verb
        for rule in rules
        if group in rule["apiGroups"] and set(resources) & set(rule["resources"])
        for verb in rule["verbs"]
    }


def compared() -> dict[str, str]:
    """The cells of Plimsoll, by the name of the row."""
    text = SECURITY.read_text().partition("### Beside others")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return {row[0]: row[1] for row in cells if row[0] not in ("", "read")}


@pytest.mark.parametrize("name", COMPARED)
def test_what_is_compared_with_others_is_what_the_controller_may_write(name: str) -> None:
    said = re.sub(r"\([^)]*\)", "", compared()[name]).partition(";")[0]
    words = set(re.findall(r"[a-z]+", said)) & {"create", "update", "patch", "delete", "get"}
    group, resources = COMPARED[name]
    assert words == verbs_on(CONTROLLER, group, resources) - set(READ)


def test_every_row_of_the_comparison_is_compared() -> None:
    assert compared().keys() == COMPARED.keys()
