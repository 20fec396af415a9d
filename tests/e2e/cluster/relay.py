"""A TCP relay between a client and the apiserver that a test can cut, like a network failure."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Relay:
    """Forwards bytes from a free loopback port. `cut` closes all connections, `closed` refuses new ones."""

    def __init__(self, host: str, port: int) -> None:
        self.closed = False
        self._target = (host, port)
        self._sockets: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        while self._sockets:
            one = self._sockets.pop()
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def close(self) -> None:
        self.closed = True
        # Closing alone does not end an accept in progress.
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                if self.closed:
                    client.close()
                    continue
                server = socket.create_connection(self._target)
                self._sockets += [client, server]
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=_pass_on, args=(source, sink), daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)


@contextmanager
def relaying(host: str, port: int) -> Iterator[Relay]:
    relay = Relay(host, port)
    try:
        yield relay
    finally:
        relay.close()
