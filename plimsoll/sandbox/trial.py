"""Tries what the start of a sandbox needs of this machine, before its programs are built for minutes."""

import os
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from plimsoll.errors import PlimsollError
from plimsoll.sandbox.certificates import AUTHORITY, CERTIFICATE, KEY, refusal, trusting, write_certificates
from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.processes import LOOPBACK, hold_port, port_of

_SECONDS: Final = 10.0
"""Limit of the time for each step of the handshake."""


def try_start(port: int | None = None) -> None:
    """Tries, with nothing of it left: a folder with enough free disk, the apiserver's port (None: any), and a server on
    it whose certificates this Python accepts, as it must accept this client's.

    Raises PlimsollError, as the start of a sandbox would after its programs are built.
    """
    folder = Folder(f"trial-{os.getpid()}")
    folder.create()
    try:
        with folder.explained():
            write_certificates(folder.certificates)
        held = hold_port(port or 0)
        with held:
            _shake_hands(folder.certificates, port_of(held))
    finally:
        folder.remove()


def _shake_hands(certificates: Path, port: int) -> None:
    """Starts a server on the held port, as etcd is: it requires the certificate of a client."""
    server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificates / AUTHORITY))
    server_tls.verify_mode = ssl.CERT_REQUIRED
    server_tls.load_cert_chain(certificates / CERTIFICATE, certificates / KEY)

    def serve() -> None:
        accepted = server.accept()[0]
        accepted.settimeout(_SECONDS)
        with server_tls.wrap_socket(accepted, server_side=True) as answered:
            answered.sendall(b".")

    try:
        with ThreadPoolExecutor(1) as pool, socket.create_server((LOOPBACK, port)) as server:
            server.settimeout(_SECONDS)
            serving = pool.submit(serve)
            with (
                socket.create_connection((LOOPBACK, port), _SECONDS) as plain,
                trusting(certificates).wrap_socket(plain, server_hostname=LOOPBACK) as asked,
                # What the server refuses is told by its side: here it is a closed connection.
                suppress(OSError),
            ):
                asked.recv(1)
            serving.result()
    except ssl.SSLError as error:
        raise refusal(error, "a server with the certificate of a sandbox") from None
    except OSError as error:
        raise PlimsollError(
            f"Nothing on this machine reaches port {port} on {LOOPBACK}: {error}.",
            "Check that the loopback interface is up, and that no firewall blocks it.",
        ) from error
