"""ClusterIdentity: the cluster of a writer. Each state records it, so that a writer never uses the state of another
cluster."""

from typing import Any, Final, NamedTuple

from plimsoll.kube import Connection

FORMAT: Final = 1
"""Version of the data that Plimsoll adds to a state. It is raised when an older release could not read it."""


class ClusterIdentity(NamedTuple):
    """A cluster, identified by the UID of its namespace kube-system; `server` is the URL that the writer uses."""

    uid: str
    server: str

    def __str__(self) -> str:
        return f"{self.uid} ({self.server})"

    def record(self) -> dict[str, Any]:
        """The identity as it is stored in a state."""
        return {"uid": self.uid, "server": self.server, "format": FORMAT}


def cluster_identity(connection: Connection) -> ClusterIdentity:
    """The identity of the connection's cluster. Raises RequestError if the account may not read the namespace
    kube-system, or ConnectionFailedError."""
    namespace = connection.request("GET", "/api/v1/namespaces/kube-system")
    return ClusterIdentity(str(namespace["metadata"]["uid"]), connection.server)
