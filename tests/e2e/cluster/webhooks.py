"""Admission webhooks of somebody else, on loopback, with the sandbox's certificates."""

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from plimsoll.sandbox import AUTHORITY, CERTIFICATE, KEY, Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.kube import Kube

WEBHOOK = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
Answer = Callable[[dict[str, Any]], dict[str, Any]]
"""The response of an AdmissionReview to its request."""


@contextmanager
def webhook_in_force(
    sandbox: Sandbox, cluster: Kube, answer: Answer, name: str, rules: list[dict[str, Any]], **fields: Any
) -> Iterator[None]:
    """`fields` are further ones of the webhook, such as `timeoutSeconds`. The apiserver takes up all webhooks of an
    object at once: another one there is asked about an object of this function."""
    certificates, known = sandbox.folder.certificates, threading.Event()
    probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-probe"}}

    def answering(request: dict[str, Any]) -> dict[str, Any]:
        if (request["kind"]["kind"], request["name"]) != ("ConfigMap", f"{name}-probe"):
            return answer(request)
        known.set()
        return {"allowed": True}

    with _serving(answering, certificates) as port:
        authority = base64.b64encode((certificates / AUTHORITY).read_bytes()).decode()
        hook = {
            "name": f"{name}.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": authority},
            "rules": rules,
            **fields,
        }
        config_maps = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        of_probe = {"name": "probe", "expression": f"request.name == '{name}-probe'"}
        probing = {"name": f"probe.{name}.example.com", "rules": [config_maps], "matchConditions": [of_probe]}
        hooks = [hook, {**hook, **probing}]
        cluster.apply({"apiVersion": WEBHOOK[0], "kind": WEBHOOK[1], "metadata": {"name": name}, "webhooks": hooks})
        try:
            await_condition(lambda: cluster.apply(probe, dry_run=True) and known.is_set(), message="it is in force")
            yield
        finally:
            cluster.delete(*WEBHOOK, name)


@contextmanager
def _serving(answer: Answer, certificates: Path) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            response = {"uid": review["request"]["uid"], **answer(review["request"])}
            body = json.dumps({**review, "response": response}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / CERTIFICATE, certificates / KEY)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
