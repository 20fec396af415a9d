"""Requests that reach public addresses only: a hub, or who answers for its name, must not have the controller ask
servers of its cluster, or of its node, for it."""

import socket
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPConnection, HTTPSConnection
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final
from urllib.request import BaseHandler, HTTPHandler, HTTPSHandler, Request

_Address = IPv4Address | IPv6Address
_NAT64: Final = IPv6Network("64:ff9b::/96")


class NotPublicError(OSError):
    """An address that may not be asked."""


class Reachable:
    """Which addresses may be asked: public ones, those in `networks` (CIDR), and `own`, an address that is declared as
    such."""

    def __init__(self, networks: Sequence[str], own: str = "") -> None:
        self._networks = [ip_network(each) for each in networks]
        self._own = own.strip("[]").casefold()

    def admits(self, address: str, host: str) -> bool:
        """Whether the address may be asked under this name."""
        if host.casefold() == self._own and _literal(host):
            return True
        return all(self._may(each) for each in _meant(ip_address(address.partition("%")[0])))

    def _may(self, address: _Address) -> bool:
        known = any(address in each for each in self._networks if each.version == address.version)
        return known or (address.is_global and not address.is_multicast)

    def connect(
        self, address: tuple[str, int], timeout: float | None = None, source_address: Any = None
    ) -> socket.socket:
        """As socket.create_connection, to the first address that answers; NotPublicError where one may not be asked.

        A name is resolved once: what is checked is what is connected to.
        """
        host, port = address
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        for *_, where in found:
            if not self.admits(str(where[0]), host):
                raise NotPublicError(
                    f"{host} is at {where[0]}, which is no public address: name a network of it in "
                    "modelHub.privateNetworks of the Environment to allow it"
                )
        last: OSError = OSError(f"{host} has no address")
        for *_, where in found:
            try:
                return socket.create_connection((str(where[0]), port), timeout, source_address)
            except OSError as error:
                last = error
        raise last

    @property
    def handlers(self) -> tuple[BaseHandler, ...]:
        """For urllib's openers. A proxy of the environment is asked wherever it is, and resolves names itself."""
        return (_Http(self), _Https(self))

    def of(self, request: Request) -> Callable[..., socket.socket]:
        """How to connect for this request."""
        target = request.host if not request.has_proxy() else _tunnelled(request)
        host = target.rpartition("@")[2].rpartition(":")[0].strip("[]") or target
        if not request.has_proxy():
            return self.connect
        if _literal(host) and not self.admits(host, host):
            raise NotPublicError(f"{host} is no public address")
        return socket.create_connection


def _tunnelled(request: Request) -> str:
    """The server that a proxy is asked for."""
    return str(getattr(request, "_tunnel_host", None) or request.full_url.partition("://")[2].partition("/")[0])


class _Http(HTTPHandler):
    def __init__(self, reachable: Reachable) -> None:
        super().__init__()
        self._reachable = reachable

    def http_open(self, req: Request) -> Any:
        connect = self._reachable.of(req)

        def connection(host: str, **more: Any) -> HTTPConnection:
            return _connecting(HTTPConnection(host, **more), connect)

        return self.do_open(connection, req)


class _Https(HTTPSHandler):
    def __init__(self, reachable: Reachable) -> None:
        super().__init__()
        self._reachable = reachable

    def https_open(self, req: Request) -> Any:
        connect = self._reachable.of(req)

        def connection(host: str, **more: Any) -> HTTPConnection:
            return _connecting(HTTPSConnection(host, **more), connect)

        return self.do_open(connection, req)


def _connecting(connection: HTTPConnection, connect: Callable[..., socket.socket]) -> HTTPConnection:
    connection._create_connection = connect  # type: ignore[attr-defined]
    return connection


def _literal(host: str) -> bool:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _meant(address: _Address) -> Iterator[_Address]:
    """The address, and those of IPv4 that it stands for."""
    yield address
    if isinstance(address, IPv6Address):
        translated = IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
        yield from filter(None, (address.ipv4_mapped, address.sixtofour, translated))
