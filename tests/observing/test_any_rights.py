"""Whoever only judges what it sees reads a cluster with whatever rights it has, and says what is not judged."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.errors import PlimsollError
from plimsoll.explaining import audit, plan_demand
from plimsoll.kube import Connection, RequestError
from plimsoll.observe.cluster import NODES, PODS, SEEN_BY, Stores, read_cluster
from tests.observing.apiserver import FakeApiserver

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = [store.kind for store in Stores()]
OF_VIEW = (
    "Pod",
    "Deployment",
    "StatefulSet",
    "Service",
    "DaemonSet",
    "ResourceQuota",
    "Event",
    "HorizontalPodAutoscaler",
)
"""Some of what Kubernetes' ClusterRole `view` may list: what is in namespaces."""


def refuse(cluster: FakeApiserver, *allowed: str) -> list[str]:
    """Refuses all kinds but these, also those that the cluster does not serve: RBAC answers first. Returns the refused
    ones."""
    status = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "cannot list resource"}
    refused = {kind.path: kind.name for kind in KINDS if kind.name not in allowed}
    cluster.refusals.update({path: [status] * 2 for path in refused})
    return list(refused.values())


def test_each_kind_says_what_is_not_judged_without_it() -> None:
    assert {kind.name for kind in KINDS} == SEEN_BY.keys()


def test_a_cluster_is_judged_with_the_rights_of_view(cluster: FakeApiserver, connection: Connection) -> None:
    waiting = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    limits = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
    status = {"phase": "Pending", "conditions": waiting}
    cluster.put(PODS.path, "p", "team", spec={"containers": [{"name": "main", **limits}]}, status=status)
    refused = refuse(cluster, *OF_VIEW)
    snapshot = read_cluster(connection, any_rights=True)
    assert [pod.name for pod in snapshot.pods] == ["p"]
    assert [each.partition(":")[0] for each in snapshot.warnings] == refused, "each by its name, and nothing else"
    assert all(SEEN_BY[name] in each for name, each in zip(refused, snapshot.warnings, strict=True))
    assert audit(plan_demand(snapshot, NOW)).nodes == 0


def test_nodes_alone_are_judged(cluster: FakeApiserver, connection: Connection) -> None:
    cluster.put(NODES.path, "n")
    refuse(cluster, "Node")
    assert [node.name for node in read_cluster(connection, any_rights=True).nodes] == ["n"]


def test_without_nodes_and_pods_nothing_is_judged(cluster: FakeApiserver, connection: Connection) -> None:
    refuse(cluster, "Queue")
    with pytest.raises(PlimsollError, match="neither nodes nor pods") as raised:
        read_cluster(connection, any_rights=True)
    assert raised.value.hint


@pytest.mark.parametrize("name", sorted({kind.name for kind in KINDS if not kind.if_forbidden}))
def test_whoever_plans_does_not_go_on_without_a_kind(cluster: FakeApiserver, connection: Connection, name: str) -> None:
    refuse(cluster, *(kind.name for kind in KINDS if kind.name != name))
    with pytest.raises(RequestError, match="cannot list"):
        read_cluster(connection)


def test_audit_goes_on_and_the_commands_that_plan_do_not(
    cluster: FakeApiserver, connection: Connection, tmp_path: Path
) -> None:
    user = {"clusters": [{"name": "c", "cluster": {"server": connection.server}}], "users": [{"name": "u", "user": {}}]}
    contexts = {"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "current-context": "c"}
    (tmp_path / "config").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **user, **contexts}))
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump({"clusters": [{"name": "c", "kubeconfig": "config"}]}))
    of_cluster = ("--kubeconfig", str(tmp_path / "config"))
    for command in (
        ("audit", *of_cluster),
        ("audit", "--fleet", str(tmp_path / "fleet.yaml")),
        ("demand", *of_cluster),
    ):
        refuse(cluster, *OF_VIEW)
        done = CliRunner().invoke(app, list(command))
        if command[0] == "audit":
            assert done.exit_code == 0, done.output
            assert "Queue: the account may not list it" in done.stdout
        else:
            assert isinstance(done.exception, RequestError)
