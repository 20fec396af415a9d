"""Queues, their users and NodePools agree on KAI's node pool."""

from typing import Any

import pytest

from plimsoll.cluster.queues import check_queues
from plimsoll.model.kai import NODE_POOL
from tests.queues.manifests import job_set, pod, pod_group, queue

WORKERS = {NODE_POOL: "workers"}


def labelled(manifest: dict[str, Any], labels: dict[str, str] = WORKERS) -> dict[str, Any]:
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}}}


def rules(*manifests: dict[str, Any]) -> list[str]:
    return [each.rule for each in check_queues(manifests)]


def node_pool(labels: dict[str, str]) -> dict[str, Any]:
    template = {"metadata": {"labels": labels}, "spec": {}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "n"},
        "spec": {"template": template},
    }


def test_the_pods_of_a_workspace_count() -> None:
    def workspace(**inference: Any) -> dict[str, Any]:
        spec = {"queue": "w", "inference": inference}
        return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "Workspace", "metadata": {"name": "w"}, "spec": spec}

    template: dict[str, Any] = {"spec": {"containers": []}}
    preset = {"preset": {"name": "phi-4"}}
    for labels in (WORKERS, {}):
        found = workspace(template={"metadata": {"labels": labels}, **template})
        assert rules(labelled(queue("w"), labels), found) == []
        assert rules(labelled(queue("w"), {} if labels else WORKERS), found) == ["queue-other-node-pool"]
    assert rules(queue("w"), workspace(pods={"labels": WORKERS}, **preset)) == ["queue-other-node-pool"]
    assert rules(labelled(queue("w")), workspace(**preset)) == [], "the Environment may give them the label"


@pytest.mark.parametrize("user", [pod("p", "w"), pod_group("g", "w"), job_set("j", "w")])
def test_a_user_of_another_node_pool_is_found(user: dict[str, Any]) -> None:
    assert rules(labelled(queue("w")), user) == ["queue-other-node-pool"]
    assert rules(labelled(queue("w")), labelled(user)) == []
    assert rules(queue("w"), labelled(user)) == ["queue-other-node-pool"]
    assert rules(queue("w"), user) == []


def test_the_label_of_a_workload_may_be_in_its_template() -> None:
    found = job_set("j", "w")
    template = found["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    template["metadata"]["labels"] |= WORKERS
    assert rules(labelled(queue("w")), found) == []


def test_a_parent_of_another_node_pool_is_found() -> None:
    assert rules(queue("a"), labelled(queue("b", "a"))) == ["queue-parent-other-node-pool"]
    assert rules(labelled(queue("a")), labelled(queue("b", "a"))) == []


def test_a_node_pool_without_nodes_is_a_warning_where_node_pools_are_known() -> None:
    assert rules(labelled(queue("w"))) == []
    assert rules(labelled(queue("w")), node_pool({})) == ["queue-without-node-pool"]
    assert rules(labelled(queue("w")), node_pool(WORKERS)) == []
    assert rules(queue("q"), node_pool(WORKERS)) == ["queue-without-node-pool"]
