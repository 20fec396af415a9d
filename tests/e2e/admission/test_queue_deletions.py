"""Deletion of a queue in use, by a real apiserver: its children are read from the status that KAI's controller writes,
its pods and PodGroups from the status of the Environment."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from plimsoll.kube import RequestError
from plimsoll.sandbox import Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.kube import Kube
from tests.policy_rules.manifests import an_environment

pytestmark = pytest.mark.e2e

QUEUE = ("scheduling.run.ai/v2", "Queue")


@pytest.fixture(scope="module")
def cluster(admission_sandbox: Sandbox) -> Iterator[Kube]:
    with closing(Kube(admission_sandbox.kubeconfig)) as kube:
        yield kube
        kube.delete("plimsoll.dev/v1alpha1", "Environment", "test")


def declare(cluster: Kube, **policies: Any) -> None:
    environment = an_environment(policies=policies)
    environment["metadata"]["name"] = "test"
    cluster.apply(environment)


def a_queue(cluster: Kube, name: str, **status: Any) -> None:
    """A queue with the status that KAI's queue controller would write."""
    amount = {"quota": 1, "limit": 1, "overQuotaWeight": 1}
    spec = {"resources": {"gpu": amount, "cpu": amount, "memory": amount}}
    cluster.apply({"apiVersion": QUEUE[0], "kind": QUEUE[1], "metadata": {"name": name}, "spec": spec})
    if status:
        cluster.patch(*QUEUE, name, {"status": status}, subresource="status")


def use_queues(cluster: Kube, *names: str) -> None:
    """The status that the controller writes."""
    status = {"status": {"queuesInUse": list(names)}}
    cluster.patch("plimsoll.dev/v1alpha1", "Environment", "test", status, subresource="status")


def refusal(cluster: Kube, name: str) -> str:
    """The message of the refused deletion; empty if it is allowed."""
    try:
        cluster.delete(*QUEUE, name)
    except RequestError as error:
        return error.message
    return ""


def test_a_queue_in_use_cannot_be_deleted(cluster: Kube) -> None:
    declare(cluster, admission="deny")
    a_queue(cluster, "research", childQueues=["vision", "language"])
    a_queue(cluster, "vision")
    a_queue(cluster, "language", childQueues=[], requested={"nvidia.com/gpu": "1"})
    use_queues(cluster, "vision")

    def refused(name: str, **status: Any) -> str:
        """The policy may be slightly behind the Environment, so the queue is created and deleted again until the
        deletion is refused."""

        def again() -> str:
            a_queue(cluster, name, **status)
            return refusal(cluster, name)

        return await_condition(again, message="the policy knows the Environment")

    message = refused("research", childQueues=["vision", "language"])
    assert "Queue research is the parent of vision, language: " in message
    assert "(queue-deleted-with-children)" in message
    message = refused("vision")
    assert "(queue-deleted-with-podgroups)" in message
    assert "Queue vision " in message
    assert refusal(cluster, "language") == "", "what KAI wrote is not read"
    use_queues(cluster)
    await_condition(lambda: refusal(cluster, "vision") == "", message="the policy knows the status")
    cluster.patch(*QUEUE, "research", {"status": {"childQueues": None}}, subresource="status")
    assert refusal(cluster, "research") == ""


def test_an_exempt_queue_can_be_deleted(cluster: Kube) -> None:
    exemption = {"rule": "queue-deleted-with-children", "kind": "Queue", "name": "old-*", "reason": "a move"}
    declare(cluster, admission="deny", exemptions=[{**exemption, "until": "2100-01-01"}])

    def gone() -> bool:
        a_queue(cluster, "old-research", childQueues=["vision"])
        return refusal(cluster, "old-research") == ""

    await_condition(gone, message="the exemption is known")
    a_queue(cluster, "research", childQueues=["vision"])
    assert "research is the parent of vision" in refusal(cluster, "research")
    cluster.patch(*QUEUE, "research", {"status": {"childQueues": []}}, subresource="status")
    assert refusal(cluster, "research") == ""


def test_with_audit_nothing_is_refused(cluster: Kube) -> None:
    declare(cluster, admission="audit")

    def gone() -> bool:
        a_queue(cluster, "research", childQueues=["vision"])
        return refusal(cluster, "research") == ""

    await_condition(gone, message="the policy knows the Environment")
