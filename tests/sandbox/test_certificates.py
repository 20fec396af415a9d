"""The certificates of a sandbox, as a Python sees them that enforces RFC 5280, and the trial of a start."""

import asyncio
import json
import os
import socket
import ssl
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from cryptography import x509

from plimsoll import home
from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, ConnectionFailedError
from plimsoll.sandbox import (
    AUTHORITY,
    CERTIFICATE,
    IDENTITIES,
    KEY,
    Folder,
    Sandbox,
    Settings,
    try_start,
    write_certificates,
)
from plimsoll.sandbox.processes import LOOPBACK, Supervisor, hold_port, port_of

_add_extension = x509.CertificateBuilder.add_extension


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path / "home"))


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """As every Python from 3.13 on."""
    for module, name in (("ssl", "create_default_context"), ("urllib3.connection", "create_urllib3_context")):
        create = getattr(sys.modules[module], name)

        def create_strict(*arguments: Any, create: Any = create, **options: Any) -> ssl.SSLContext:
            context: ssl.SSLContext = create(*arguments, **options)
            context.verify_flags |= ssl.VERIFY_X509_STRICT
            return context

        monkeypatch.setattr(sys.modules[module], name, create_strict)


@pytest.fixture
def without_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates are written without the extension that says what their key is for."""

    def add(builder: x509.CertificateBuilder, extension: Any, critical: bool) -> x509.CertificateBuilder:
        return builder if isinstance(extension, x509.KeyUsage) else _add_extension(builder, extension, critical)

    monkeypatch.setattr(x509.CertificateBuilder, "add_extension", add)


class _Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")


@pytest.fixture
def serve() -> Iterator[Callable[[Path], int]]:
    """Starts a server that requires the certificate of a client, as etcd does; returns its port."""
    started = []

    def start(folder: Path) -> int:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.load_verify_locations(folder / AUTHORITY)
        context.load_cert_chain(folder / CERTIFICATE, folder / KEY)
        server = HTTPServer((LOOPBACK, 0), _Healthy)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        started.append((server, thread))
        return server.server_port

    yield start
    for server, thread in started:
        server.shutdown()
        server.server_close()
        thread.join()


def kubeconfig(folder: Path, port: int) -> Path:
    server = {"server": f"https://{LOOPBACK}:{port}", "certificate-authority": str(folder / AUTHORITY)}
    pair = {"client-certificate": str(folder / CERTIFICATE), "client-key": str(folder / KEY)}
    content = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": server}],
        "users": [{"name": "u", "user": pair}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.mark.parametrize("host", [LOOPBACK, "localhost"])
def test_servers_and_clients_with_strict_rules_accept_them(
    host: str, strict: None, serve: Callable[[Path], int], tmp_path: Path
) -> None:
    write_certificates(tmp_path)
    port = serve(tmp_path)
    context = ssl.create_default_context(cafile=str(tmp_path / AUTHORITY))
    context.load_cert_chain(tmp_path / CERTIFICATE, tmp_path / KEY)

    with urllib.request.urlopen(f"https://{host}:{port}/", context=context) as answer:
        assert answer.status == 200
    assert Connection.open(kubeconfig(tmp_path, port)).request("GET", "/") == {}


@pytest.mark.parametrize("name", [AUTHORITY, CERTIFICATE])
def test_they_say_what_their_keys_are_for(name: str, tmp_path: Path) -> None:
    """Of https://www.rfc-editor.org/rfc/rfc5280, sections 4.2.1.1, 4.2.1.2, 4.2.1.3 and 4.2.1.9."""
    write_certificates(tmp_path)
    read = {each: x509.load_pem_x509_certificate((tmp_path / each).read_bytes()) for each in (AUTHORITY, CERTIFICATE)}
    extensions = read[name].extensions
    authority = read[AUTHORITY].extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value

    usage = extensions.get_extension_for_class(x509.KeyUsage)
    constraints = extensions.get_extension_for_class(x509.BasicConstraints)
    assert (usage.critical, constraints.critical) == (True, True)
    signs = name == AUTHORITY
    assert (usage.value.key_cert_sign, usage.value.crl_sign, constraints.value.ca) == (signs, signs, signs)
    assert usage.value.digital_signature is not signs
    own = x509.SubjectKeyIdentifier.from_public_key(read[name].public_key())
    assert extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value == own
    by = extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert by.key_identifier == authority.digest


def test_each_start_writes_new_ones_and_keeps_the_key_of_service_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier release wrote some that Python now refuses, and all expire."""
    found: list[dict[str, bytes]] = []

    def note(sandbox: Sandbox, **_: object) -> None:
        found.append({path.name: path.read_bytes() for path in sandbox.folder.certificates.iterdir()})

    monkeypatch.setattr("plimsoll.sandbox.sandbox.find_programs", lambda _: [])
    monkeypatch.setattr("plimsoll.sandbox.sandbox.programs.link", lambda *_: None)
    monkeypatch.setattr(Sandbox, "_supervise", note)
    Sandbox.named("one").up()
    Sandbox.named("one").up()

    first, second = found
    assert {name for name in first if first[name] == second[name]} == {"service-account.key"}
    assert {AUTHORITY, CERTIFICATE, KEY} < first.keys()


def test_a_connection_to_a_cluster_whose_certificates_break_the_rules_says_so(
    strict: None, without_usage: None, serve: Callable[[Path], int], tmp_path: Path
) -> None:
    write_certificates(tmp_path)

    with pytest.raises(ConnectionFailedError, match="key usage") as refused:
        Connection.open(kubeconfig(tmp_path, serve(tmp_path))).request("GET", "/")

    assert "RFC 5280" in str(refused.value.hint)
    assert "certificate-authority-data" not in str(refused.value.hint)


def test_a_refused_certificate_ends_the_start_with_the_reason(strict: None, without_usage: None) -> None:
    """It was waited for until the machine was said to be too busy."""
    folder = Folder("one")
    folder.create()
    write_certificates(folder.certificates)
    folder.tokens.write_text("".join(f"token,{name},{name}\n" for name in IDENTITIES))
    folder.bin().mkdir()
    etcd = folder.bin() / "etcd"
    etcd.write_text(_ETCD)
    etcd.chmod(0o755)
    ours, theirs = socket.socketpair()
    # Not by asyncio.run, which leaves the thread without an event loop; Pulumi's mocks take the thread's.
    with ours, theirs, closing(asyncio.new_event_loop()) as loop:
        supervisor = Supervisor(folder, Settings(), theirs, stop_with_caller=True)
        assert loop.run_until_complete(supervisor.run()) is False
        events = [json.loads(line) for line in ours.recv(65536).splitlines()]

    failed = events[-1]
    assert (failed["event"], [event.get("name") for event in events[:-1]]) == ("failed", ["etcd"])
    assert f"refuses the certificate of etcd ({folder.certificates / CERTIFICATE}" in failed["message"]
    assert "key usage" in failed["message"]
    assert "busy" not in f"{failed['message']} {failed['hint']}"


_ETCD = f"""#!{sys.executable}
import http.server, ssl, sys, urllib.parse
flags = dict(flag.partition("=")[::2] for flag in sys.argv[1:])
url = urllib.parse.urlsplit(flags["--listen-client-urls"])
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(flags["--cert-file"], flags["--key-file"])
server = http.server.HTTPServer((url.hostname, url.port), http.server.BaseHTTPRequestHandler)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def test_a_trial_of_a_start_leaves_nothing(strict: None) -> None:
    try_start()

    assert not home.sandboxes().exists()


def test_a_trial_tells_what_python_refuses(strict: None, without_usage: None) -> None:
    with pytest.raises(PlimsollError, match=r"refuses the certificate of .* key usage"):
        try_start()

    assert not home.sandboxes().exists()


def test_a_trial_tells_that_the_port_is_taken() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken, pytest.raises(PlimsollError, match=str(taken.getsockname()[1])):
        try_start(taken.getsockname()[1])

    with hold_port() as held:
        free = port_of(held)
    try_start(free)


def test_a_trial_tells_that_its_folder_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_HOME", os.devnull)

    with pytest.raises(PlimsollError, match="PLIMSOLL_HOME"):
        try_start()
