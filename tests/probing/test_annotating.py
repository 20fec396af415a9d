"""The probe writes the UUID to its own pod and retries transient errors of the apiserver."""

import json
import os
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from plimsoll.probe import OwnPod, ProbeError
from plimsoll.sandbox import CERTIFICATE, KEY, write_certificates
from tests.probing.driver_files import UUID, a_gpu


class Apiserver:
    """Responds with the given statuses, then with 200. Records the requests."""

    def __init__(self, folder: Path) -> None:
        write_certificates(folder)
        (folder / "token").write_text("secret\n")
        self.account = folder
        self.statuses: list[int] = []
        self.requests: list[tuple[str, str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_PATCH(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append((self.path, self.headers["Authorization"], body))
                status = outer.statuses.pop(0) if outer.statuses else 200
                answer = json.dumps({"message": f"answer {status}"}).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / CERTIFICATE, folder / KEY)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def environ(self) -> dict[str, str]:
        return {
            "POD_NAME": "gpu-reservation-1",
            "POD_NAMESPACE": "kai-resource-reservation",
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.server.server_port),
        }

    def pod(self) -> OwnPod:
        return OwnPod.from_environment(self.environ, self.account)


@pytest.fixture
def apiserver(tmp_path: Path) -> Iterator[Apiserver]:
    apiserver = Apiserver(tmp_path / "account")
    yield apiserver
    apiserver.server.shutdown()
    apiserver.server.server_close()


def test_only_its_own_pod_is_patched(apiserver: Apiserver) -> None:
    apiserver.pod().reserve(UUID)
    assert apiserver.requests == [
        (
            "/api/v1/namespaces/kai-resource-reservation/pods/gpu-reservation-1",
            "Bearer secret",
            {"metadata": {"annotations": {"run.ai/reserve_for_gpu_index": UUID}}},
        )
    ]


def test_transient_errors_are_retried(apiserver: Apiserver) -> None:
    apiserver.statuses = [500, 429, 409, 401]
    apiserver.pod().reserve(UUID)
    assert len(apiserver.requests) == 5


@pytest.mark.parametrize("status", [403, 404, 422])
def test_a_refusal_ends_the_probe(apiserver: Apiserver, status: int) -> None:
    apiserver.statuses = [status]
    with pytest.raises(ProbeError, match=rf"gpu-reservation-1: {status} answer {status}"):
        apiserver.pod().reserve(UUID)
    assert len(apiserver.requests) == 1


def test_an_unreachable_apiserver_is_an_error_after_the_patience(apiserver: Apiserver) -> None:
    pod = OwnPod.from_environment({**apiserver.environ, "KUBERNETES_SERVICE_PORT": "1"}, apiserver.account)
    with pytest.raises(ProbeError, match="cannot be reached"):
        pod.reserve(UUID, timeout=0.0)


def test_a_server_with_a_certificate_of_another_ca_is_refused(apiserver: Apiserver, tmp_path: Path) -> None:
    write_certificates(tmp_path / "other")
    (tmp_path / "other/token").write_text("secret")
    with pytest.raises(ProbeError, match="cannot be reached"):
        OwnPod.from_environment(apiserver.environ, tmp_path / "other").reserve(UUID, timeout=0.0)
    assert not apiserver.requests


def test_a_missing_token_is_reported(apiserver: Apiserver) -> None:
    (apiserver.account / "token").unlink()
    with pytest.raises(ProbeError, match="no token"):
        apiserver.pod().reserve(UUID)


def test_an_ipv6_address_is_in_brackets() -> None:
    environ = {"POD_NAME": "p", "POD_NAMESPACE": "n", "KUBERNETES_SERVICE_HOST": "::1", "KUBERNETES_SERVICE_PORT": "6"}
    assert OwnPod.from_environment(environ).server == "https://[::1]:6"


def test_it_holds_the_gpu_until_it_is_terminated(apiserver: Apiserver, tmp_path: Path) -> None:
    a_gpu(tmp_path)
    command = [sys.executable, "-m", "plimsoll.probe", "--root", str(tmp_path), "--account", str(apiserver.account)]
    process = subprocess.Popen(command, env={**os.environ, **apiserver.environ}, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    with process:
        assert process.stderr.readline() == f"kai-resource-reservation/gpu-reservation-1 holds {UUID}\n"
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 0
