"""Errors of missing or rejected credentials of a kubeconfig say what to do."""

import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from plimsoll.kube import Connection, ConnectionFailedError, Kubeconfig, RequestError
from plimsoll.observe.cluster import NODES
from plimsoll.sandbox import AUTHORITY, CERTIFICATE, KEY, write_certificates
from tests.awaiting import await_condition
from tests.observing.apiserver import FakeApiserver

API = "client.authentication.k8s.io/v1"
PLUGIN = "cloud-login"


def kubeconfig(folder: Path, server: str, user: dict[str, Any], **cluster: str) -> Path:
    path = folder / "kubeconfig"
    content = {
        "current-context": "prod",
        "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A user with an exec plugin that does what `answers` in its folder says."""
    program = tmp_path / PLUGIN
    program.write_text(f"#!/bin/sh\n. {tmp_path / 'answers'}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return {"exec": {"apiVersion": API, "command": PLUGIN, "interactiveMode": "Never"}}


def refuses(folder: Path) -> None:
    (folder / "answers").write_text("echo the session has expired >&2\nexit 3\n")


def gives(folder: Path, **status: str) -> None:
    credential = orjson.dumps({"apiVersion": API, "kind": "ExecCredential", "status": status}).decode()
    (folder / "answers").write_text(f"printf %s '{credential}'\n")


def assert_named(error: ConnectionFailedError, why: str) -> None:
    assert {"'prod'", f"'{PLUGIN}'"} <= set(error.message.replace(":", "").split())
    assert why in error.message
    assert "log in again" in str(error.hint)


def test_a_failing_plugin_is_named_with_its_output(
    tmp_path: Path, plugin: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    refuses(tmp_path)
    path = kubeconfig(tmp_path, "http://127.0.0.1:9", plugin)
    with pytest.raises(ConnectionFailedError) as caught:
        Connection.open(path)
    assert_named(caught.value, "the session has expired")
    with pytest.raises(ConnectionFailedError) as caught:
        Kubeconfig.read(str(path)).connect()
    assert_named(caught.value, "the session has expired")
    assert capfd.readouterr().err == "", "the client library logs nothing beside it"


def test_a_plugin_that_is_not_installed_is_named(tmp_path: Path, plugin: dict[str, Any]) -> None:
    (tmp_path / PLUGIN).unlink()
    with pytest.raises(ConnectionFailedError) as caught:
        Connection.open(kubeconfig(tmp_path, "http://127.0.0.1:9", plugin))
    assert_named(caught.value, "No such file")


def test_a_plugin_that_fails_later_is_named(tmp_path: Path, plugin: dict[str, Any], connection: Connection) -> None:
    """Its credentials expire while a controller runs."""
    gives(tmp_path, token="first", expirationTimestamp="2020-01-01T00:00:00Z")
    opened = Connection.open(kubeconfig(tmp_path, connection.server, plugin))
    opened.request("GET", NODES.path, query={"limit": "1"})
    refuses(tmp_path)

    def refused() -> ConnectionFailedError | None:
        """None as long as the credentials of the first request are reused."""
        try:
            opened.request("GET", NODES.path, query={"limit": "1"})
        except ConnectionFailedError as error:
            return error
        return None

    assert_named(await_condition(refused), "the session has expired")


def test_a_plugin_that_hangs_is_ended(tmp_path: Path, plugin: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.kube.exec_plugin.SECONDS", 0.2)
    (tmp_path / "answers").write_text("exec sleep 600\n")
    with pytest.raises(ConnectionFailedError) as caught:
        Connection.open(kubeconfig(tmp_path, "http://127.0.0.1:9", plugin))
    assert_named(caught.value, "user 'u'")
    assert "0.2 s" in caught.value.message


def test_a_token_is_renewed_before_it_expires(
    tmp_path: Path, plugin: dict[str, Any], cluster: FakeApiserver, connection: Connection
) -> None:
    gives(tmp_path, token="first", expirationTimestamp="2020-01-01T00:00:00Z")
    opened = Connection.open(kubeconfig(tmp_path, connection.server, plugin))
    gives(tmp_path, token="second", expirationTimestamp="2100-01-01T00:00:00Z")
    opened.request("GET", NODES.path, query={"limit": "1"})
    refuses(tmp_path)
    opened.request("GET", NODES.path, query={"limit": "1"})
    assert [each.authorization for each in cluster.requests] == ["Bearer second", "Bearer second"]


def test_a_token_without_a_time_of_expiry_is_renewed_when_it_is_refused(
    tmp_path: Path, plugin: dict[str, Any], cluster: FakeApiserver, connection: Connection
) -> None:
    gives(tmp_path, token="first")
    opened = Connection.open(kubeconfig(tmp_path, connection.server, plugin))
    gives(tmp_path, token="second")
    opened.request("GET", NODES.path, query={"limit": "1"})
    unauthorized = {"code": 401, "reason": "Unauthorized", "message": "Unauthorized"}
    cluster.refusals[NODES.path] = [unauthorized]
    opened.request("GET", NODES.path, query={"limit": "1"})
    cluster.refusals[NODES.path] = [unauthorized]
    with pytest.raises(RequestError, match="not accept the credentials"):
        opened.request("GET", NODES.path, query={"limit": "1"})
    tokens = [each.authorization.removeprefix("Bearer ") for each in cluster.requests]
    assert tokens == ["first", "first", "second", "second"], "the same token is not sent again"


def test_one_thread_renews_the_token_that_others_wait_for(
    tmp_path: Path, plugin: dict[str, Any], cluster: FakeApiserver, connection: Connection
) -> None:
    gives(tmp_path, token="first", expirationTimestamp="2020-01-01T00:00:00Z")
    opened = Connection.open(kubeconfig(tmp_path, connection.server, plugin))
    gives(tmp_path, token="second", expirationTimestamp="2100-01-01T00:00:00Z")
    answers = tmp_path / "answers"
    answers.write_text(f"echo run >> {tmp_path / 'runs'}\nsleep 0.1\n{answers.read_text()}")
    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(opened.request, "GET", NODES.path, query={"limit": "1"}) for _ in range(8)]:
            done.result()
    assert {each.authorization for each in cluster.requests} == {"Bearer second"}
    assert (tmp_path / "runs").read_text() == "run\n"


def test_a_token_in_a_file_is_read_again(tmp_path: Path, cluster: FakeApiserver, connection: Connection) -> None:
    """As that of a service account, which the kubelet replaces."""
    (tmp_path / "token").write_text("first")
    path = kubeconfig(tmp_path, connection.server, {"tokenFile": "token"})
    opened = [Connection.open(path), Kubeconfig.read(str(path)).connect()]

    def sends(token: str) -> bool:
        for each in opened:
            each.request("GET", NODES.path, query={"limit": "1"})
        return [each.authorization for each in cluster.requests[-2:]] == [f"Bearer {token}"] * 2

    assert sends("first")
    (tmp_path / "token").write_text("second")
    await_condition(lambda: sends("second"))
    (tmp_path / "token").unlink()

    def failing() -> str:
        try:
            opened[0].request("GET", NODES.path, query={"limit": "1"})
        except ConnectionFailedError as error:
            return error.message
        return ""

    assert "the credentials of context 'prod' cannot be read" in await_condition(failing)


def refused(cluster: FakeApiserver, path: Path) -> RequestError:
    cluster.refusals[NODES.path] = [{"code": 401, "reason": "Unauthorized", "message": "Unauthorized"}]
    opened = Connection.open(path)
    with pytest.raises(RequestError) as caught:
        opened.request("GET", NODES.path)
    assert opened.server in caught.value.message
    assert "'prod'" in caught.value.message
    return caught.value


def test_rejected_credentials_are_named_with_their_context(
    cluster: FakeApiserver, connection: Connection, tmp_path: Path, plugin: dict[str, Any]
) -> None:
    gives(tmp_path, token="t")
    assert PLUGIN in str(refused(cluster, kubeconfig(tmp_path, connection.server, plugin)).hint)
    assert "kubeconfig" in str(refused(cluster, kubeconfig(tmp_path, connection.server, {"token": "t"})).hint)


class _ForCertificates(BaseHTTPRequestHandler):
    """Lets in who has a certificate."""

    connection: ssl.SSLSocket

    def do_GET(self) -> None:
        self.send_response(200 if self.connection.getpeercert() else 401)
        self.end_headers()


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[str]:
    """The address of a server whose certificate was signed by its own CA."""
    write_certificates(tmp_path / "own")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(tmp_path / "own" / AUTHORITY)
    context.load_cert_chain(tmp_path / "own" / CERTIFICATE, tmp_path / "own" / KEY)
    server = HTTPServer(("127.0.0.1", 0), _ForCertificates)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_certificate_of_another_ca_is_not_reported_as_an_outage(tmp_path: Path, secured: str) -> None:
    write_certificates(tmp_path / "other")
    path = kubeconfig(tmp_path, secured, {}, **{"certificate-authority": str(tmp_path / "other" / AUTHORITY)})
    with pytest.raises(ConnectionFailedError, match="certificate") as caught:
        Connection.open(path).request("GET", NODES.path)
    assert "'prod'" in caught.value.message
    assert "certificate-authority-data" in str(caught.value.hint)


def test_a_certificate_of_a_plugin_is_used(tmp_path: Path, plugin: dict[str, Any], secured: str) -> None:
    own = tmp_path / "own"
    gives(
        tmp_path,
        clientCertificateData=(own / CERTIFICATE).read_text(),
        clientKeyData=(own / KEY).read_text(),
    )
    path = kubeconfig(tmp_path, secured, plugin, **{"certificate-authority": str(own / AUTHORITY)})
    assert Connection.open(path).request("GET", NODES.path) == {}
    path = kubeconfig(tmp_path, secured, {}, **{"certificate-authority": str(own / AUTHORITY)})
    with pytest.raises(RequestError) as caught:
        Connection.open(path).request("GET", NODES.path)
    assert caught.value.code == 401


def test_a_certificate_of_a_plugin_is_replaced_before_it_expires(
    tmp_path: Path, plugin: dict[str, Any], secured: str
) -> None:
    def gives_certificate(folder: Path, expires: str) -> None:
        gives(
            tmp_path,
            clientCertificateData=(folder / CERTIFICATE).read_text(),
            clientKeyData=(folder / KEY).read_text(),
            expirationTimestamp=expires,
        )

    own = tmp_path / "own"
    write_certificates(tmp_path / "other")
    gives_certificate(tmp_path / "other", "2020-01-01T00:00:00Z")
    opened = Connection.open(kubeconfig(tmp_path, secured, plugin, **{"certificate-authority": str(own / AUTHORITY)}))
    gives_certificate(own, "2100-01-01T00:00:00Z")
    assert opened.request("GET", NODES.path) == {}


@pytest.mark.parametrize(
    ("settings", "answer", "why"),
    [
        ({"args": [1]}, None, "args.0"),
        ({}, "secret", "object"),
        ({}, {"apiVersion": "v2", "status": {"token": "secret"}}, "v2"),
        ({}, {"apiVersion": API, "status": {}}, "neither"),
        ({}, {"apiVersion": API, "status": {"token": ["secret"]}}, "status.token"),
    ],
)
def test_a_plugin_that_breaks_the_contract_is_named(
    tmp_path: Path, plugin: dict[str, Any], settings: dict[str, Any], answer: Any, why: str
) -> None:
    (tmp_path / "answers").write_text(f"printf %s '{orjson.dumps(answer).decode()}'\n")
    with pytest.raises(ConnectionFailedError) as caught:
        Connection.open(kubeconfig(tmp_path, "http://127.0.0.1:9", {"exec": plugin["exec"] | settings}))
    assert_named(caught.value, why)
    assert "secret" not in caught.value.message


def test_the_current_context_is_that_of_the_first_of_several_files_that_has_one(tmp_path: Path) -> None:
    paths = []
    for name, current in (("none", ""), ("first", "first"), ("second", "second")):
        content = {
            "current-context": current,
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "clusters": [{"name": name, "cluster": {"server": f"http://{name}"}}],
            "users": [{"name": name, "user": {"token": "t"}}],
        }
        paths.append(tmp_path / name)
        paths[-1].write_text(yaml.safe_dump(content))
    several = Path(":".join(map(str, paths)))
    assert Connection.open(several).server == "http://first"
    assert Connection.open(several, "second").server == "http://second"


def test_a_context_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ConnectionFailedError) as raised:
        Connection.open(kubeconfig(tmp_path, "https://127.0.0.1:1", {"token": "t"}), "staging")

    assert "staging" in raised.value.message
    assert "--context" in str(raised.value.hint)
    assert "(prod)" in str(raised.value.hint)
