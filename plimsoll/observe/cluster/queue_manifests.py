"""Reads the manifests that the checks of queues need: the Environment, Queues, PodGroups and pods with a queue."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, RequestError
from plimsoll.labels import API_VERSION, QUEUE


class _Listed(NamedTuple):
    api_version: str
    kind: str
    path: str
    selector: dict[str, str]


_LISTED: Final = (
    _Listed(API_VERSION, "Environment", f"/apis/{API_VERSION}/environments", {}),
    _Listed("scheduling.run.ai/v2", "Queue", "/apis/scheduling.run.ai/v2/queues", {}),
    _Listed("scheduling.run.ai/v2alpha2", "PodGroup", "/apis/scheduling.run.ai/v2alpha2/podgroups", {}),
    _Listed(
        "v1",
        "Pod",
        "/api/v1/pods",
        {"labelSelector": QUEUE, "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"},
    ),
)


def queue_objects(connection: Connection) -> Iterator[dict[str, Any]]:
    """The complete objects, each with apiVersion and kind.

    Raises PlimsollError if the cluster does not serve Queues, RequestError and ConnectionFailedError.
    """
    for listed in _LISTED:
        try:
            for item in connection.list_items(listed.path, query=listed.selector, retry_throttled=True):
                yield {**item, "apiVersion": listed.api_version, "kind": listed.kind}
        except RequestError as error:
            if error.code == 403 and listed.kind == "Environment":
                continue  # the label of node pools is KAI's default
            if error.code != 404:
                raise
            if listed.kind == "Queue":
                raise PlimsollError(
                    f"the cluster does not know the kind Queue ({listed.api_version})",
                    "install KAI, which defines it",
                ) from None
