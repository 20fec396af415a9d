"""A proxy between a controller and the apiserver that can cut, delay and silence connections, and refuse requests.

It terminates TLS with the sandbox's own certificate and forwards requests one by one, so that it can respond in place
of the apiserver. Responses are streamed, because a watch does not end.
"""

import asyncio
import base64
import contextlib
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import yaml

from plimsoll.sandbox import AUTHORITY, CERTIFICATE, KEY, Sandbox

_POLL_SECONDS = 0.02
_END_SECONDS = 5.0
_TEXTS = {409: "Conflict", 410: "Gone", 429: "Too Many Requests", 500: "Internal Server Error"}
_REASONS = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}


@dataclass(frozen=True)
class Request:
    """The parts of a request that a refusal depends on."""

    method: str
    path: str
    query: dict[str, list[str]]
    raw: bytes

    @property
    def writes(self) -> bool:
        return self.method != "GET"

    @property
    def watches(self) -> bool:
        return "watch" in self.query


Refuse = Callable[[Request], int]
"""The status code to answer with; 0 passes the request on."""
Which = Callable[[Request], bool]


class Proxy:
    """Its fields set its behaviour. They may be set from any thread and apply to open connections."""

    def __init__(self, port: int, certificates: Path) -> None:
        self.refuse: Refuse = lambda _: 0
        self.delay = 0.0
        """Seconds by which each part is delayed, in both directions."""
        self.silent = False
        """Nothing is forwarded, and there is no error."""
        self.silences: Which = lambda _: False
        """Requests whose response is not forwarded any more; others, on other connections, work."""
        self.closed = False
        """Connections are closed as soon as they are opened."""
        self.refused = 0
        """Requests that the proxy refused."""
        self.watched: set[str] = set()
        """Paths of watches."""
        self._upstream = port
        self._authority = certificates / AUTHORITY
        self._server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._server_tls.load_cert_chain(certificates / CERTIFICATE, certificates / KEY)
        self.trust()
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._server_tls))
        self.port: int = self._server.sockets[0].getsockname()[1]

    def trust(self) -> None:
        """Trusts the sandbox's authority as it is now. The proxy's own certificate stays, as its clients know it."""
        self._client_tls = ssl.create_default_context(cafile=str(self._authority))

    def cut(self) -> None:
        """Closes every connection, including those with running requests."""

        def end() -> None:
            for writer in list(self._writers):
                writer.transport.abort()

        self._loop.call_soon_threadsafe(end)

    def close(self) -> None:
        self.silent, self.delay, self.silences = False, 0.0, lambda _: False

        async def end() -> None:
            self._server.close()
            for writer in list(self._writers):
                writer.transport.abort()
            if others := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(others, timeout=_END_SECONDS)

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, task: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(task, self._loop).result(30)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.closed:
            writer.transport.abort()
            return
        opened, answers, asked = {writer}, None, list[Request]()
        self._writers.add(writer)
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._upstream, ssl=self._client_tls)
            opened.add(up_writer)
            self._writers.add(up_writer)
            answers = asyncio.create_task(self._pass_on(up_reader, writer, asked))
            while True:
                request = await _read(reader)
                asked[:] = [request]
                if request.watches:
                    self.watched.add(request.path)
                await self._hold()
                if code := self.refuse(request):
                    self.refused += 1
                    writer.write(_refusal(code))
                    await writer.drain()
                else:
                    up_writer.write(request.raw)
                    await up_writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            if answers is not None:
                answers.cancel()
            for each in opened:
                self._writers.discard(each)
                each.transport.abort()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: Sequence[Request]
    ) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(65536):
                await self._hold()
                while any(map(self.silences, asked)):
                    await asyncio.sleep(_POLL_SECONDS)
                writer.write(piece)
                await writer.drain()
        writer.transport.abort()

    async def _hold(self) -> None:
        if self.delay:
            await asyncio.sleep(self.delay)
        while self.silent:
            await asyncio.sleep(_POLL_SECONDS)


async def _read(reader: asyncio.StreamReader) -> Request:
    """The next request; raises IncompleteReadError at the end of the connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length") or 0))
    parts = urlsplit(target)
    return Request(method, parts.path, parse_qs(parts.query), head + body)


def _refusal(code: int) -> bytes:
    """A Status as an apiserver would return it."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code}
    body = orjson.dumps({**status, "reason": _REASONS[code], "message": f"{_TEXTS[code]}, by the test's proxy"})
    head = [f"HTTP/1.1 {code} {_TEXTS[code]}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    if code == 429:
        head.append("Retry-After: 1")
    return "\r\n".join([*head, "", ""]).encode() + body


@contextmanager
def proxying(sandbox: Sandbox) -> Iterator[Proxy]:
    state = sandbox.state()
    assert state is not None
    proxy = Proxy(state.port_of("kube-apiserver") or 0, sandbox.folder.certificates)
    try:
        yield proxy
    finally:
        proxy.close()


def kubeconfig_through(proxy: Proxy, kubeconfig: Path) -> dict[str, Any]:
    """The content of the kubeconfig, for the proxy. It has the authority of the proxy's certificate: the sandbox has
    another one each time it starts."""
    content: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
    cluster = content["clusters"][0]["cluster"]
    authority = Path(cluster.pop("certificate-authority")).read_bytes()
    cluster["server"] = f"https://127.0.0.1:{proxy.port}"
    cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    return content
