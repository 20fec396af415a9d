"""What cannot be connected to is said so, with what to change."""

from pathlib import Path

import pytest
import structlog

from plimsoll.connection import Connection, ConnectionFailedError, RequestError
from plimsoll.observe import kinds
from plimsoll.observe.reading import read_cluster
from tests.observing.apiserver import FakeApiserver

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:9", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: t}}]
"""


@pytest.mark.parametrize(
    "text", ["", "junk: [", "[1, 2]", "clusters: 5", KUBECONFIG.replace("name: here,", "name: x,")]
)
def test_a_kubeconfig_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(ConnectionFailedError, match="cannot connect to a cluster: kubeconfig") as caught:
        Connection.open(path)
    assert str(path) in caught.value.message
    assert "--kubeconfig" in str(caught.value.hint)


def test_a_server_that_is_not_checked_is_said_once(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    with structlog.testing.capture_logs() as logged:
        Connection.open(path)
    assert [each["log_level"] for each in logged] == ["warning"]


def test_an_answer_that_is_not_json_is_an_error(cluster: FakeApiserver, connection: Connection) -> None:
    cluster.raw[kinds.NODES.path] = b"<html>a portal</html>"
    with pytest.raises(ConnectionFailedError, match="is not JSON"):
        connection.request("GET", kinds.NODES.path)


def test_one_look_takes_lists_alone(cluster: FakeApiserver, connection: Connection) -> None:
    cluster.put(kinds.NODES.path, "n")
    snapshot = read_cluster(connection)
    assert [node.name for node in snapshot.nodes] == ["n"]
    assert not any(request.watch for request in cluster.requests)


def test_a_look_that_is_not_allowed_fails(cluster: FakeApiserver, connection: Connection) -> None:
    cluster.refusals[kinds.PODS.path] = [{"code": 403, "reason": "Forbidden", "message": "pods is forbidden"}]
    with pytest.raises(RequestError, match="pods is forbidden"):
        read_cluster(connection)


def test_who_asks_is_read_again_after_a_moment(
    cluster: FakeApiserver, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put(kinds.NODES.path, "n")
    monkeypatch.setattr("plimsoll.connection._AUTHORIZATION_SECONDS", 0.0)
    configuration = connection._configuration
    for token in ("old", "new"):
        configuration.api_key["authorization"] = token
        connection.request("GET", kinds.NODES.path, query={"limit": "1"})
    assert [request.authorization for request in cluster.requests] == ["old", "new"]
