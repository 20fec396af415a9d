"""A real admission webhook of somebody else refuses every second write of NodeClaims and workloads, and answers some
too late: what is declared is there in the end, once, and everything is removed in the end."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.chaos.changes import API, CLAIM, NAMESPACE, claims_of, workspace
from tests.e2e.cluster.conditions import is_ready
from tests.e2e.cluster.controller import controller
from tests.e2e.cluster.kube import Kube
from tests.e2e.cluster.webhooks import webhook_in_force

pytestmark = pytest.mark.e2e

LONG = 240
"""Seconds: a controller starts, and refused writes are tried again later and later."""
PATIENCE = 3
"""Seconds that the apiserver waits for an answer."""
CONTROLLER = "system:serviceaccount:plimsoll-system:plimsoll"


class Webhook:
    """Refuses every second write, and answers every seventh too late. `admitted` counts the others."""

    def __init__(self) -> None:
        self.admitted: Counter[tuple[str, str]] = Counter()
        """By operation and name."""
        self.refused = 0
        self.late = 0
        self._asked = 0
        self._lock = threading.Lock()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self._asked += 1
            late, refused = self._asked % 7 == 0, self._asked % 2 == 0
            if late:
                self.late += 1
            elif refused:
                self.refused += 1
            elif not request.get("dryRun"):
                self.admitted[request["operation"], request["name"]] += 1
        if late:
            time.sleep(PATIENCE + 1)
        status = {"message": "every second one is refused"}
        return {"allowed": not refused, "status": status}


@pytest.fixture
def cluster(recovery_sandbox: Sandbox) -> Iterator[Kube]:
    with closing(Kube(recovery_sandbox.kubeconfig)) as cluster:
        yield cluster


@pytest.fixture
def webhook(recovery_sandbox: Sandbox, cluster: Kube) -> Iterator[Webhook]:
    """In force for the controller's account."""
    webhook = Webhook()
    kinds = {"karpenter.sh": "nodeclaims", "apps": "deployments"}
    rules = [
        {
            "apiGroups": [group],
            "apiVersions": ["*"],
            "resources": [plural],
            "operations": ["CREATE", "UPDATE", "DELETE"],
        }
        for group, plural in kinds.items()
    ]
    conditions = [{"name": "controller", "expression": f"request.userInfo.username == '{CONTROLLER}'"}]
    fields = {"failurePolicy": "Fail", "timeoutSeconds": PATIENCE, "matchConditions": conditions}
    with webhook_in_force(recovery_sandbox, cluster, webhook.answer, "half", rules, **fields):
        yield webhook


def test_half_of_the_writes_are_refused(
    recovery_sandbox: Sandbox, cluster: Kube, webhook: Webhook, tmp_path: Path
) -> None:
    with controller(recovery_sandbox, tmp_path) as running:
        cluster.apply(workspace("halved", 6))
        await_condition(
            lambda: len(claims := claims_of(cluster, "halved")) == 6 and all(map(is_ready, claims)), LONG, "six nodes"
        )
        await_condition(lambda: cluster.get("apps/v1", "Deployment", "halved", NAMESPACE), LONG, "the Deployment")
        created = {
            name: times
            for (verb, name), times in webhook.admitted.items()
            if verb == "CREATE" and name.startswith("halved")
        }
        assert len(created) == 7 and set(created.values()) == {1}, "six NodeClaims and a Deployment, each once"
        cluster.delete(API, "Workspace", "halved", NAMESPACE)
        await_condition(lambda: not cluster.list(*CLAIM), 400, "nothing is left")
        await_condition(lambda: not cluster.get(API, "Workspace", "halved", NAMESPACE), LONG, "nor the Workspace")
    assert webhook.refused and webhook.late
    assert "Traceback" not in running.text()
