"""An apiserver of a cluster with an Environment and nothing else, for commands that read one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import yaml

from plimsoll.labels import API_VERSION, GROUP

_ENVIRONMENT = {
    "apiVersion": API_VERSION,
    "kind": "Environment",
    "metadata": {"name": "prod", "uid": "uid-prod", "resourceVersion": "1", "generation": 1},
    "spec": {},
}
_DEFINITIONS = [
    {"metadata": {"name": f"{kind}.{GROUP}", "uid": f"uid-{kind}", "resourceVersion": "1", "generation": 1}}
    for kind in ("environments", "workspaces")
]
_LISTS = {"environments": [_ENVIRONMENT], "customresourcedefinitions": _DEFINITIONS}
"""The objects of each kind; the others have none."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    ended: threading.Event

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        kind = url.path.rpartition("/")[2]
        if "watch=" in url.query:
            self.send_response(200)
            self.end_headers()
            self.wfile.flush()
            self.ended.wait()
            self.close_connection = True
        elif kind == "kube-system":
            self._send(200, {"kind": "Namespace", "metadata": {"name": kind, "uid": "uid-cluster"}})
        elif "/leases/" in url.path:
            self._send(404, {"kind": "Status", "reason": "NotFound", "code": 404})
        elif kind == "prod":
            self._send(200, _ENVIRONMENT)
        else:
            self._send(200, {"metadata": {"resourceVersion": "1"}, "items": _LISTS.get(kind, [])})

    def _write(self) -> None:
        written = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._send(200, {**written, "metadata": {**written.get("metadata", {}), "resourceVersion": "2"}})

    do_POST = do_PUT = do_PATCH = do_DELETE = _write  # noqa: N815

    def _send(self, status: int, body: dict[str, Any]) -> None:
        text = orjson.dumps(body)
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@contextmanager
def cluster(kubeconfig: Path) -> Iterator[None]:
    """Serves it on a free loopback port, and writes the kubeconfig."""
    ended = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"ended": ended}))
    server.daemon_threads = True
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "current-context": "c",
    }
    kubeconfig.write_text(yaml.safe_dump(content))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
