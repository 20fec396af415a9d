"""Lets gRPC servers on the loopback interface serve their own user only.

Pulumi's engine reaches plugins and programs by TCP alone: it dials 127.0.0.1 and the port that it was given, without
credentials. On a machine that others use, too, the kernel tells whose connection it is, as a Unix socket would.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import grpc

_CONNECTIONS: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""https://docs.kernel.org/networking/proc_net_tcp.html; gRPC's sockets for IPv4 are in the second one."""
_ESTABLISHED: Final = "01"
_KINDS: Final = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")


class SameUser(grpc.ServerInterceptor):  # type: ignore[misc]
    """Refuses calls of other users' processes with PERMISSION_DENIED. `port` is the server's, once it is bound."""

    port = 0

    def intercept_service(self, continuation: Callable[[Any], Any], handler_call_details: Any) -> Any:
        handler = continuation(handler_call_details)
        kind = next((kind for kind in _KINDS if getattr(handler, kind, None) is not None), None)
        if kind is None:
            return handler
        serve = getattr(handler, kind)

        def checked(request: Any, context: grpc.ServicerContext) -> Any:
            if not is_own(context.peer(), self.port):
                context.abort(grpc.StatusCode.PERMISSION_DENIED, "this server serves its own user only")
            return serve(request, context)

        return handler._replace(**{kind: checked})


def is_own(peer: str, port: int) -> bool:
    """Whether a connection to this port is that of a process of this user. `peer` is as gRPC names it:
    `ipv4:127.0.0.1:1234`.

    Where the kernel shows no table of connections, nothing is known, and it counts as one.
    """
    tables = [table.read_text() for table in _CONNECTIONS if table.exists()]
    if not tables:
        return True
    ends = (f":{int(peer.rpartition(':')[2]):04X}", f":{port:04X}")
    rows = (line.split() for table in tables for line in table.splitlines()[1:])
    owners = {
        int(row[7]) for row in rows if row[1].endswith(ends[0]) and row[2].endswith(ends[1]) and row[3] == _ESTABLISHED
    }
    return owners == {os.geteuid()}
