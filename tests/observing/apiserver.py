"""A small apiserver with list and watch, which fails on demand."""

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson
from kubernetes import client

from plimsoll.kube import Connection

Raw = dict[str, Any]
END = b""
"""Ends a watch regularly."""


@dataclass
class Request:
    path: str
    query: dict[str, str]
    accept: str
    authorization: str = ""

    @property
    def watch(self) -> bool:
        return "watch" in self.query


@dataclass
class FakeApiserver:
    """Serves `paths`. Each write gets the next resource version and is sent to the open watches."""

    page: int = 500
    requests: list[Request] = field(default_factory=list)
    refusals: dict[str, list[Raw]] = field(default_factory=dict)
    """Error responses by path, in order; `retryAfter` becomes the header."""
    raw: dict[str, bytes] = field(default_factory=dict)
    """Raw bytes to send instead of a response, by path."""
    down: bool = False
    """Connections are closed without an answer."""
    version: int = 100
    compacted: int = 0
    _objects: dict[str, dict[str, Raw]] = field(default_factory=dict)
    _log: list[tuple[int, str, Raw]] = field(default_factory=list)
    _watches: dict[str, list["queue.Queue[bytes | None]"]] = field(default_factory=dict)
    _deaf: set[str] = field(default_factory=set)
    """Paths whose watches, later ones too, receive nothing."""
    _stalled: list["queue.Queue[bytes | None]"] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def serve(self, *paths: str) -> None:
        for path in paths:
            self._objects.setdefault(path, {})

    def unserve(self, path: str) -> None:
        with self._lock:
            del self._objects[path]
            self.cut(path)

    def put(self, path: str, name: str, /, namespace: str = "", **fields: Any) -> None:
        """Creates or replaces an object."""
        with self._lock:
            kind = "MODIFIED" if name in self._objects[path] else "ADDED"
            metadata = {"name": name, "uid": f"uid-{name}", **fields.pop("metadata", {})}
            if namespace:
                metadata["namespace"] = namespace
            self._objects[path][name] = raw = {"metadata": metadata, **fields}
            self._emit(path, kind, raw)

    def delete(self, path: str, name: str) -> None:
        with self._lock:
            self._emit(path, "DELETED", self._objects[path].pop(name))

    def bookmark(self, path: str) -> None:
        """Advances the resource version, as other writes to a cluster do, and sends a bookmark."""
        with self._lock:
            self.version += 1
            raw = {"kind": "X", "metadata": {"resourceVersion": str(self.version)}}
            self.say(path, orjson.dumps({"type": "BOOKMARK", "object": raw}) + b"\n")

    def say(self, path: str, line: bytes) -> None:
        """Writes raw bytes to the open watches."""
        for watch in self._watches.get(path, []):
            watch.put(line)

    def stall(self, path: str) -> None:
        """The open watches receive nothing more until they are cut."""
        with self._lock:
            self._stalled += self._watches.pop(path, [])

    def stall_all(self, path: str) -> None:
        """The open watches and later ones receive nothing until `deliver`."""
        self._deaf.add(path)
        self.stall(path)

    def deliver(self, path: str) -> None:
        """Later watches work."""
        self._deaf.discard(path)

    def cut(self, path: str) -> None:
        """Breaks the open watches in the middle of the stream."""
        for watch in self._watches.get(path, []) + self._stalled:
            watch.put(None)

    def restore(self, path: str, version: int, *names: str) -> None:
        """The objects become those of another history, without events, as when an older etcd is restored."""
        with self._lock:
            self._log, self.version = [], version
            self._objects[path] = {
                name: {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}}
                for name in names
            }

    def compact(self) -> None:
        """Earlier resource versions can no longer be watched."""
        self.compacted = self.version

    def seen(self, path: str, watch: bool) -> list[Request]:
        return [each for each in list(self.requests) if each.path == path and each.watch is watch]

    def watching(self, path: str) -> bool:
        return bool(self._watches.get(path))

    def _emit(self, path: str, kind: str, raw: Raw) -> None:
        self.version += 1
        raw["metadata"]["resourceVersion"] = str(self.version)
        event = orjson.loads(orjson.dumps({"type": kind, "object": raw}))
        self._log.append((self.version, path, event))
        self.say(path, orjson.dumps(event) + b"\n")

    def answer(self, request: Request) -> tuple[int, Raw]:
        with self._lock:
            if self.refusals.get(request.path):
                status = self.refusals[request.path].pop(0)
                return status["code"], status
            if request.path not in self._objects:
                return 404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": "not served"}
            items = sorted(self._objects[request.path].values(), key=lambda raw: str(raw["metadata"]["name"]))
            start = int(request.query.get("continue", 0))
            end = start + min(self.page, int(request.query["limit"]))
            metadata = {"resourceVersion": str(self.version)} | ({"continue": str(end)} if end < len(items) else {})
            return 200, {"metadata": metadata, "items": items[start:end]}

    def open_watch(self, request: Request) -> "tuple[int, Raw | queue.Queue[bytes | None]]":
        with self._lock:
            if self.refusals.get(request.path):
                status = self.refusals[request.path].pop(0)
                return status["code"], status
            if request.path not in self._objects:
                return 404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": "not served"}
            stream: queue.Queue[bytes | None] = queue.Queue()
            since = int(request.query["resourceVersion"])
            if since < self.compacted:
                # As kube-apiserver does: 200, then an ERROR event.
                gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
                stream.put(orjson.dumps({"type": "ERROR", "object": gone}) + b"\n")
                stream.put(END)
            for version, path, event in self._log:
                if path == request.path and version > since:
                    stream.put(orjson.dumps(event) + b"\n")
            if request.path in self._deaf:
                stream = queue.Queue()
                self._stalled.append(stream)
            else:
                self._watches.setdefault(request.path, []).append(stream)
            return 200, stream

    def next_line(self, stream: "queue.Queue[bytes | None]", seconds: float) -> bytes | None:
        """What a watch gets next: its END after `seconds`, unless it is stalled."""
        try:
            return stream.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return stream.get() if stream in self._stalled else END

    def close_watch(self, path: str, stream: "queue.Queue[bytes | None]") -> None:
        with self._lock:
            for streams in (self._watches.get(path, []), self._stalled):
                if stream in streams:
                    streams.remove(stream)

    def close(self) -> None:
        for path in list(self._watches):
            self.cut(path)
        for stalled in self._stalled:
            stalled.put(None)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster: FakeApiserver

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        request = Request(
            url.path, dict(parse_qsl(url.query)), self.headers["Accept"], self.headers["Authorization"] or ""
        )
        self.cluster.requests.append(request)
        if self.cluster.down:
            self.close_connection = True
            return
        if url.path in self.cluster.raw:
            self._send(200, self.cluster.raw[url.path])
        elif not request.watch:
            self._reply(*self.cluster.answer(request))
        else:
            self._stream(request)

    def _stream(self, request: Request) -> None:
        status, stream = self.cluster.open_watch(request)
        if isinstance(stream, dict):
            self._reply(status, stream)
            return
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        ends = time.monotonic() + int(request.query["timeoutSeconds"])
        try:
            while line := self.cluster.next_line(stream, ends - time.monotonic()):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.flush()
            if line == END:
                self.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass  # the client went away
        finally:
            self.cluster.close_watch(request.path, stream)

    def _reply(self, status: int, body: Raw) -> None:
        self._send(status, orjson.dumps(body), body.get("retryAfter"))

    def _send(self, status: int, text: bytes, retry_after: str | None = None) -> None:
        self.send_response(status)
        if retry_after is not None:
            self.send_header("Retry-After", retry_after)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_POST(self) -> None:
        self.do_GET()


@contextmanager
def listening(cluster: FakeApiserver) -> Iterator[Connection]:
    """Serves the cluster on a free loopback port; yields the connection to it."""
    handler = type("Handler", (_Handler,), {"cluster": cluster})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    configuration = client.Configuration()
    configuration.host = f"http://127.0.0.1:{server.server_port}"
    connection = Connection(configuration)
    try:
        yield connection
    finally:
        cluster.close()
        connection.close()
        server.shutdown()
        server.server_close()
        thread.join()
