"""The manifests for GitOps tools: health checks as the tools evaluate them, and least privileges."""

from typing import Any

import cel
import lupa
import pytest
import yaml

from plimsoll.components import CONTROLLER, CONTROLLER_FOR_DEMAND
from tests.pages import CHECKOUT

EXAMPLES = CHECKOUT / "examples" / "gitops"
READ = {"get", "list", "watch"}
GOOD = [{"type": kind, "status": "True", "reason": "Ready"} for kind in ("ResourceReady", "NodesReady")]
WAITING = [{"type": "ResourceReady", "status": "False", "reason": "NodesNotReady", "message": "1 of 3 nodes"}, GOOD[1]]
REFUSED = [
    {"type": "ResourceReady", "status": "False", "reason": "QueueUnknown", "message": "no queue x"},
    {"type": "NodesReady", "status": "False", "reason": "Refused", "message": "the Workspace is refused"},
]


def workspace(conditions: list[dict[str, str]] | None, observed: int = 2) -> dict[str, Any]:
    status = {} if conditions is None else {"status": {"observedGeneration": observed, "conditions": conditions}}
    return {"metadata": {"generation": 2}, **status}


CASES = {
    "new": (workspace(None), "Progressing", "not yet seen by the controller"),
    "changed": (workspace(GOOD, observed=1), "Progressing", "not yet seen by the controller"),
    "ready": (workspace(GOOD), "Healthy", ""),
    "waiting": (workspace(WAITING), "Progressing", "1 of 3 nodes"),
    "refused": (workspace(REFUSED), "Degraded", "no queue x"),
}


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.load_all((EXAMPLES / name).read_text(), yaml.CSafeLoader))


@pytest.mark.parametrize("case", CASES)
def test_argo_cd_reads_the_health_of_a_workspace(case: str) -> None:
    found, status, message = CASES[case]
    (settings,) = documents("argo-cd-settings.yaml")
    lua = lupa.LuaRuntime()
    lua.globals().obj = lua.table_from(found, recursive=True)
    health = lua.execute(settings["resource.customizations.health.plimsoll.dev_Workspace"])
    assert (health["status"], health["message"]) == (status, message)


@pytest.mark.parametrize("case", CASES)
def test_flux_waits_for_what_argo_cd_calls_healthy(case: str) -> None:
    found, status, _ = CASES[case]
    (kustomization,) = (each for each in documents("flux.yaml") if each["kind"] == "Kustomization")
    (health,) = kustomization["spec"]["healthCheckExprs"]
    assert cel.evaluate(health["current"], {"status": {}, **found}) == (status == "Healthy")


@pytest.mark.parametrize(("kind", "rules"), [("ClusterRole", CONTROLLER), ("Role", CONTROLLER_FOR_DEMAND)])
def test_the_drift_job_may_read_what_the_controller_reads_and_no_more(kind: str, rules: list[Any]) -> None:
    (role,) = (each for each in documents("drift.yaml") if each["kind"] == kind)
    read = [
        {**rule, "verbs": [verb for verb in rule["verbs"] if verb in READ]}
        for rule in rules
        if READ & set(rule["verbs"]) and not any("/" in resource for resource in rule["resources"])
    ]
    assert role["rules"] == read
