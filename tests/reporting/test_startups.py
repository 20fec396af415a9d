"""How long the first replica on a new node took is measured once for each node, and shown by `plimsoll why`."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.explaining import explain, plan_demand, why_workspace
from plimsoll.model import Snapshot
from plimsoll.model.api import Startup, Workspace, WorkspaceStatus
from plimsoll.model.cluster import Pod
from plimsoll.model.karpenter import NodeClaim
from plimsoll.observe.pods import read_pod
from plimsoll.plan import plan, validate
from plimsoll.plan.workspaces import WorkspaceNodes
from plimsoll.report import status_of
from tests.builders import NC24, a_claim, a_node, a_snapshot, a_workspace, an_environment

NOW = datetime(2026, 1, 3, tzinfo=UTC)


def at(minute: int, second: int = 0) -> str:
    return f"2026-01-02T00:{minute:02}:{second:02}Z"


def wanting(replicas: int = 1, startup: Startup | None = None, **fields: Any) -> Workspace:
    workspace = a_workspace(replicas=replicas, instance_type=NC24, selector={}, **fields)
    return workspace.model_copy(update={"status": WorkspaceStatus(startup=startup or Startup())})


def a_pod(node: str, *, restarts: int = 0, placed: str = at(3), started: str = at(5), ready: str = at(9, 30)) -> Pod:
    """As the apiserver has it."""
    labels = {"plimsoll.dev/workspace": "ws", "plimsoll.dev/workspace-namespace": "default"}
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": placed},
        {"type": "Ready", "status": "True", "lastTransitionTime": ready},
    ]
    container = {"name": "server", "restartCount": restarts, "state": {"running": {"startedAt": started}}}
    pod = read_pod(
        {
            "metadata": {"name": f"on-{node}", "namespace": "default", "labels": labels},
            "spec": {"nodeName": node, "containers": [{"name": "server"}]},
            "status": {"conditions": conditions, "containerStatuses": [container]},
        }
    )
    assert pod is not None
    return pod


def a_ready_claim(name: str = "c", created: str = at(0), ready: str = at(2, 40)) -> NodeClaim:
    claim = a_claim(name, wanting(), node=f"n-{name}", ready=True)
    conditions = [each.model_copy(update={"last_transition_time": ready}) for each in claim.conditions]
    return claim.model_copy(update={"creation_timestamp": created, "conditions": tuple(conditions)})


def a_cluster(workspace: Workspace, *objects: Any, **claims: int) -> Snapshot:
    nodes = [a_node(f"n-{each.name}", None, instance_type=NC24) for each in objects if isinstance(each, NodeClaim)]
    settings = an_environment(nap=True, nodeClaims={"idleSeconds": 315_360_000, **claims})
    return a_snapshot(workspace, *objects, *nodes, environment=settings)


def recorded(workspace: Workspace, *objects: Any) -> Startup:
    snapshot = a_cluster(workspace, *objects)
    [verdict] = validate(snapshot)
    return WorkspaceStatus.model_validate(
        status_of(workspace, verdict, WorkspaceNodes(snapshot, [verdict]), NOW)
    ).startup


def test_node_image_and_server_are_measured() -> None:
    found = recorded(wanting(), a_ready_claim(), a_pod("n-c"))
    assert (found.node_seconds, found.image_seconds, found.server_seconds) == (160, 120, 270)
    assert (found.seconds, found.node, found.instance_type, found.measured) == (550, "n-c", NC24, at(9, 30))


def test_a_later_pod_on_the_same_node_does_not_count() -> None:
    """The images are there."""
    first = recorded(wanting(), a_ready_claim(), a_pod("n-c"))
    later = a_pod("n-c", placed=at(20), started=at(20, 1), ready=at(21))
    assert recorded(wanting(startup=first), a_ready_claim(), later) == first


def test_the_newest_node_counts() -> None:
    first = recorded(wanting(), a_ready_claim(), a_pod("n-c"))
    new = a_ready_claim("d", created=at(30), ready=at(31))
    pod = a_pod("n-d", placed=at(32), started=at(33), ready=at(34))
    found = recorded(wanting(startup=first), a_ready_claim(), new, a_pod("n-c"), pod)
    assert (found.node, found.seconds) == ("n-d", 180)
    assert recorded(wanting(startup=found), a_ready_claim(), new, a_pod("n-c"), pod) == found


@pytest.mark.parametrize(
    "pod",
    [
        a_pod("n-c", restarts=1),
        a_pod("n-c", started=""),
        a_pod("n-c", ready="soon"),
        a_pod("n-c", placed=at(8)),
        a_pod("elsewhere"),
    ],
)
def test_without_all_times_the_last_record_stays(pod: Pod) -> None:
    last = Startup(node="before", server_seconds=7)
    assert recorded(wanting(startup=last), a_ready_claim(), pod) == last


def test_the_record_stays_without_replicas_and_while_it_is_refused() -> None:
    last = Startup(node="before", server_seconds=7)
    assert recorded(wanting(0, startup=last)) == last
    refused = wanting(startup=last)
    resource = refused.spec.resource.model_copy(update={"instance_type": "no-such-type"})
    refused = refused.model_copy(update={"spec": refused.spec.model_copy(update={"resource": resource})})
    assert recorded(refused) == last


def explained(workspace: Workspace, *objects: Any, **claims: int) -> list[str]:
    snapshot = a_cluster(workspace, *objects, **claims)
    planned = plan_demand(snapshot, NOW)
    whole = plan(snapshot, validate(snapshot), NOW)
    return [link.text for link in why_workspace(planned, explain(snapshot, whole, workspace.ref, NOW), whole).links]


def test_why_says_how_long_the_first_token_takes_and_until_when_nodes_stay() -> None:
    last = Startup(
        node="n-c", instance_type=NC24, measured=at(9), node_seconds=160, image_seconds=120, server_seconds=270
    )
    none = explained(wanting(0, startup=last))
    assert [each for each in none if "550 s" in each]
    assert not any("idleSeconds" in each for each in none)
    staying = explained(wanting(0, startup=last), a_ready_claim())
    assert [each for each in staying if "550 s" in each and "stays, 270 s" in each]
    assert [each for each in staying if "idleSeconds keeps 1 node" in each]


@pytest.mark.parametrize("replicas", [0, 1])
def test_before_it_was_measured_why_says_what_the_first_token_may_take(replicas: int) -> None:
    claims = {"launchDeadlineSeconds": 60, "registrationDeadlineSeconds": 200, "gpuDeadlineSeconds": 100}
    preset = a_workspace(preset="phi-4", replicas=replicas, instance_type=NC24, selector={})
    [text] = [each for each in explained(preset, **claims) if "not measured yet" in each]
    assert "node after 400 s" in text
    assert "weights and load after 2074 s" in text, "30 minutes, and 10 s for each of 27.35 GiB"
    [template] = [each for each in explained(wanting(replicas)) if "not measured yet" in each]
    assert "load" not in template, "it has probes of its own"
