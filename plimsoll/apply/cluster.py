"""Which cluster a writer works on: each state records it, so that no other cluster's writer takes it for its own."""

from typing import Any, Final, NamedTuple

from plimsoll.kube import Connection

FORMAT: Final = 1
"""Of what Plimsoll adds to a state. Raised when an older release could not read it."""


class ClusterIdentity(NamedTuple):
    """A cluster, by the UID of its namespace kube-system; `server` is how its writer reaches it."""

    uid: str
    server: str

    def __str__(self) -> str:
        return f"{self.uid} ({self.server})"

    def record(self) -> dict[str, Any]:
        """As it stands in a state."""
        return {"uid": self.uid, "server": self.server, "format": FORMAT}


def cluster_identity(connection: Connection) -> ClusterIdentity:
    """Raises RequestError where the account may not read the namespace kube-system, or ConnectionFailedError."""
    namespace = connection.request("GET", "/api/v1/namespaces/kube-system")
    return ClusterIdentity(str(namespace["metadata"]["uid"]), connection.server)
