"""A small apiserver: discovery, objects, watches, and failures on demand. It has no admission and no controllers."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import orjson
import yaml

Failure = int | Literal["drop before", "drop after"] | tuple[int, str]
"""A status with its message, or a connection that breaks before or after the request has taken effect."""

_RESOURCES = {
    "/api/v1": [
        ("ConfigMap", "configmaps", True),
        ("Namespace", "namespaces", False),
        ("Pod", "pods", True),
        ("Secret", "secrets", True),
    ],
    "/apis/apps/v1": [("Deployment", "deployments", True), ("StatefulSet", "statefulsets", True)],
    "/apis/rbac.authorization.k8s.io/v1": [("Role", "roles", True)],
}


class Apiserver:
    """Objects by path. `requests` holds each request as `METHOD path`."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.requests: list[str] = []
        self.applied_by: list[str] = []
        """The field manager of each apply."""
        self.failures: list[tuple[str, Failure]] = []
        self.watched = threading.Event()
        self.url = ""
        self._changed = threading.Condition()
        self._version = 0

    def fail(self, method: str, failure: Failure) -> None:
        """The next requests with `method` fail in this way, one for each call."""
        self.failures.append((method, failure))

    def change(self, path: str, obj: dict[str, Any] | None) -> None:
        """Creates, replaces or removes an object, as another client would."""
        with self._changed:
            self._version += 1
            if obj is None:
                del self.objects[path]
            else:
                obj.setdefault("metadata", {})["resourceVersion"] = str(self._version)
                self.objects[path] = obj
            self._changed.notify_all()

    def kubeconfig(self, folder: Path) -> Path:
        path = folder / "kubeconfig"
        entries = {
            "clusters": [{"name": "c", "cluster": {"server": self.url}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "c", **entries}))
        return path

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        if path in _RESOURCES:
            listed = [{"kind": k, "name": n, "namespaced": scoped} for k, n, scoped in _RESOURCES[path]]
            return 200, {"kind": "APIResourceList", "resources": listed}
        key = f"{path}/{body['metadata']['name']}" if method == "POST" else path
        live = self.objects.get(key)
        if method == "POST" and live is not None:
            return _status(409, "AlreadyExists")
        if method in ("GET", "PUT", "DELETE") and live is None:
            return _status(404, "NotFound")
        if isinstance(body, list) and live is not None:
            for operation in body:
                live["metadata"][operation["path"].rpartition("/")[2]] = operation["value"]
            self.change(key, live)
            return 200, live
        wanted = body["metadata"].get("uid") if isinstance(body, dict) and method == "PATCH" else None
        if wanted is not None and wanted != (live or {"metadata": {}})["metadata"].get("uid"):
            return _status(409, "uid mismatch: the provided object specified another uid")
        if method == "PATCH" and isinstance(body, dict):
            if body["metadata"].get("managedFields"):
                return _status(400, "metadata.managedFields must be nil")
            self.applied_by.append(query["fieldManager"])
        if method in ("POST", "PATCH") and not query.get("dryRun"):
            known = live["metadata"] if live else {"uid": str(uuid.uuid4())}
            made = {**(live or {}), **body, "metadata": known | body["metadata"]}
            operation = "Apply" if method == "PATCH" else "Update"
            made["metadata"]["managedFields"] = [{"manager": query["fieldManager"], "operation": operation}]
            self.change(key, made)
            return 201, made
        if method == "DELETE" and live is not None:
            if live["metadata"].get("finalizers"):
                live["metadata"]["deletionTimestamp"] = "now"
                self.change(key, live)
                return 200, live
            self.change(key, None)
            return 200, {"kind": "Status", "status": "Success"}
        return 200, live or body

    def events(self, path: str, query: dict[str, str]) -> Iterator[bytes]:
        """Later changes of one object. Ends when it is deleted, or after the requested seconds without a change."""
        key = f"{path}/{query['fieldSelector'].removeprefix('metadata.name=')}"
        version = self._version_of(key)
        self.watched.set()
        while True:
            with self._changed:
                while self._version_of(key) == version:
                    if not self._changed.wait(timeout=float(query["timeoutSeconds"])):
                        return
                live = self.objects.get(key)
            version = self._version_of(key)
            yield orjson.dumps({"type": "DELETED" if live is None else "MODIFIED", "object": live or {}}) + b"\n"
            if live is None:
                return

    def _version_of(self, key: str) -> str | None:
        live = self.objects.get(key)
        return None if live is None else str(live["metadata"]["resourceVersion"])


def _status(code: int, reason: str) -> tuple[int, dict[str, Any]]:
    return code, {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason}


@contextmanager
def apiserver() -> Iterator[Apiserver]:
    one = Apiserver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            split = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(split.query).items()}
            length = int(self.headers.get("Content-Length") or 0)
            body = orjson.loads(self.rfile.read(length)) if length else None
            one.requests.append(f"{self.command} {split.path}")
            if query.get("watch"):
                self._stream(one.events(split.path, query))
                return
            failure = next((f for f in one.failures if f[0] == self.command), None)
            if failure is not None:
                one.failures.remove(failure)
                if failure[1] == "drop after":
                    one.answer(self.command, split.path, query, body)
                if isinstance(failure[1], str):
                    self.close_connection = True
                    return
                code, message = failure[1] if isinstance(failure[1], tuple) else (failure[1], "Failed")
                self._send(*_status(code, message))
                return
            self._send(*one.answer(self.command, split.path, query, body))

        def _send(self, code: int, content: Any) -> None:
            text = orjson.dumps(content)
            self.send_response(code)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def _stream(self, lines: Iterator[bytes]) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                for line in lines:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                self.close_connection = True

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _handle  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            """Prints nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    one.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield one
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
