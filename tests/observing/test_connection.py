"""Connection errors say what is wrong and what to change."""

import re
from pathlib import Path
from typing import Any

import pytest
import structlog
import urllib3
from kubernetes import client

from plimsoll.kube import Connection, ConnectionFailedError, RequestError
from plimsoll.observe.cluster import NODES, PODS, read_cluster
from tests.awaiting import await_condition
from tests.observing.apiserver import FakeApiserver

DRA = "/apis/resource.k8s.io/v1"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:9", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: t}}]
"""


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.DependencyWarning")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "junk: [",
        "[1, 2]",
        "text",
        "clusters: 5",
        KUBECONFIG.replace("name: here,", "name: x,"),
        KUBECONFIG.replace("context: {cluster: c, user: u}", "context: 7"),
        KUBECONFIG.replace('server: "https://127.0.0.1:9", ', ""),
        KUBECONFIG.replace('"https://127.0.0.1:9"', "9"),
        KUBECONFIG.replace("insecure", "proxy-url: socks5://127.0.0.1, insecure"),
    ],
)
def test_an_invalid_kubeconfig_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(ConnectionFailedError, match="cannot connect to a cluster: kubeconfig") as caught:
        Connection.open(path)
    assert str(path) in caught.value.message
    assert "--kubeconfig" in str(caught.value.hint)
    assert not re.search("object (has|does)|indices", caught.value.message), "no error of Python's"


def test_a_token_that_is_not_a_valid_header_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG.replace("token: t", 'token: "two\\nlines"'))
    with pytest.raises(ConnectionFailedError, match="token") as caught:
        Connection.open(path).request("GET", NODES.path)
    assert "two" not in caught.value.message


def test_an_unverified_server_is_logged_once(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    with structlog.testing.capture_logs() as logged:
        Connection.open(path)
    assert [each["log_level"] for each in logged] == ["warning"]


def test_an_answer_that_is_not_json_is_an_error(cluster: FakeApiserver, connection: Connection) -> None:
    cluster.raw[NODES.path] = b"<html>a portal</html>"
    with pytest.raises(ConnectionFailedError, match="is not JSON"):
        connection.request("GET", NODES.path)


def test_a_short_limit_holds_for_the_connection_too(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[Any] = []

    def fail(*_: object, timeout: urllib3.Timeout, **__: object) -> None:
        limits.append(timeout.connect_timeout)
        raise urllib3.exceptions.ProtocolError("ended")

    monkeypatch.setattr(urllib3.PoolManager, "request", fail)
    for seconds in (0.5, 30.0):
        with pytest.raises(ConnectionFailedError):
            connection.request("GET", NODES.path, timeout=seconds)
    assert limits == [0.5, 5.0]


def test_reading_once_uses_lists_only(cluster: FakeApiserver, connection: Connection) -> None:
    cluster.put(NODES.path, "n")
    snapshot = read_cluster(connection)
    assert [node.name for node in snapshot.nodes] == ["n"]
    assert not any(request.watch for request in cluster.requests)


def test_nodes_alone_are_read_with_their_devices(cluster: FakeApiserver, connection: Connection) -> None:
    """A command that reads some kinds sees what drivers publish of nodes and what pods claim."""
    read_cluster(connection, only=("Node",))
    assert f"{DRA}/resourceslices" in {request.path for request in cluster.requests}
    del cluster.requests[:]
    read_cluster(connection, only=("Queue",))
    assert not any(DRA in request.path for request in cluster.requests)


def test_reading_without_permission_fails(cluster: FakeApiserver, connection: Connection) -> None:
    cluster.refusals[PODS.path] = [{"code": 403, "reason": "Forbidden", "message": "pods is forbidden"}]
    with pytest.raises(RequestError, match="pods is forbidden"):
        read_cluster(connection)


def put_off(seconds: str) -> dict[str, Any]:
    message = "storage is (re)initializing"
    return {"code": 429, "reason": "TooManyRequests", "message": message, "retryAfter": seconds}


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of each wait; no time passes."""
    waits: list[float] = []
    monkeypatch.setattr("urllib3.util.retry.time.sleep", waits.append)
    return waits


def test_reading_once_waits_for_retry_after(cluster: FakeApiserver, connection: Connection, slept: list[float]) -> None:
    cluster.put(NODES.path, "n")
    cluster.refusals[NODES.path] = [put_off("1"), put_off("2"), put_off("86400")]
    assert [node.name for node in read_cluster(connection).nodes] == ["n"]
    assert slept == [1, 2, 10]


def test_reading_once_fails_after_too_many_retries(
    cluster: FakeApiserver, connection: Connection, slept: list[float]
) -> None:
    cluster.refusals[NODES.path] = [put_off("1")] * 100
    with pytest.raises(RequestError, match=r"storage is \(re\)initializing"):
        read_cluster(connection)
    assert slept == [1] * 10


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_callers_that_retry_by_themselves_get_the_error_at_once(
    cluster: FakeApiserver, connection: Connection, slept: list[float], method: str
) -> None:
    """A write is sent only once in any case."""
    cluster.refusals[NODES.path] = [put_off("1")] * 100
    with pytest.raises(RequestError, match="initializing"):
        connection.request(method, NODES.path, retry_throttled=method == "POST")
    assert len(cluster.requests) == 1
    with (
        pytest.raises(RequestError, match="initializing"),
        connection.stream(NODES.path, query={"watch": "true"}, read_timeout=5.0),
    ):
        pass
    assert slept == []


@pytest.mark.parametrize("code", [301, 403, 500, 503])
def test_only_throttled_requests_are_retried(
    cluster: FakeApiserver, connection: Connection, slept: list[float], code: int
) -> None:
    cluster.refusals[NODES.path] = [{**put_off("1"), "code": code}] * 100
    with pytest.raises(RequestError):
        connection.request("GET", NODES.path, retry_throttled=True)
    assert len(cluster.requests) == 1


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_unreachable_server_has_one_error(connection: Connection, slept: list[float], scheme: str) -> None:
    """For a port without a server, and for a server without TLS."""
    host = connection.server.removeprefix("http")
    server = client.Configuration()
    server.host = f"https{host}" if scheme == "https" else "http://127.0.0.1:9"
    output_text = []
    for retry_throttled in (False, True):
        with pytest.raises(ConnectionFailedError) as caught:
            Connection(server).request("GET", NODES.path, retry_throttled=retry_throttled)
        output_text.append(re.sub("0x[0-9a-f]+", "", caught.value.message))
    assert output_text[0] == output_text[1]
    assert slept == []


def test_credentials_are_read_again_after_a_moment(cluster: FakeApiserver, connection: Connection) -> None:
    cluster.put(NODES.path, "n")
    configuration = client.Configuration()
    configuration.host = connection.server
    renewing = Connection(configuration)

    def sent(token: str) -> bool:
        configuration.api_key["authorization"] = token
        renewing.request("GET", NODES.path, query={"limit": "1"})
        return cluster.requests[-1].authorization == token

    assert sent("old")
    await_condition(lambda: sent("new"))
