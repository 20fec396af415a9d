"""Detects KAI's binder. If it runs, KAI owns the reservations, and Plimsoll must not create any."""

from typing import Any, Final

from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, RequestError

_DEPLOYMENTS: Final = "/apis/apps/v1/deployments"
_BIND_REQUESTS: Final = "/apis/scheduling.run.ai/v1alpha2/bindrequests"
_NAME: Final = "binder"
_IMAGE: Final = "kai-scheduler/"
_ENDED: Final = ("Succeeded", "Failed")


class KaiBinderError(PlimsollError):
    """KAI's binder runs in the cluster."""


def refuse_beside_kai(connection: Connection) -> None:
    """Raises KaiBinderError if a Deployment of KAI's binder has replicas."""
    found = connection.request(
        "GET", _DEPLOYMENTS, query={"fieldSelector": f"metadata.name={_NAME}"}, retry_throttled=True
    )
    for item in found.get("items") or ():
        if _is_kai(item):
            namespace = item["metadata"]["namespace"]
            raise KaiBinderError(
                f"KAI's binder runs here (Deployment {namespace}/{_NAME}): it creates the reservations, and "
                "Plimsoll only reads them",
                "set schedulerName kai-scheduler on share pods, or remove KAI first",
            )


def groups_of_bind_requests(connection: Connection) -> set[str]:
    """Names of the GPU groups in BindRequests that are not finished; none if the cluster does not serve the kind."""
    try:
        found = connection.request("GET", _BIND_REQUESTS)
    except RequestError as error:
        if error.code == 404:
            return set()
        raise
    live = [each for each in found.get("items") or () if (each.get("status") or {}).get("phase") not in _ENDED]
    return {group for each in live for group in (each.get("spec") or {}).get("selectedGPUGroups") or ()}


def _is_kai(deployment: dict[str, Any]) -> bool:
    spec = deployment.get("spec") or {}
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or ()
    images = [str(each.get("image") or "") for each in containers]
    return spec.get("replicas", 1) != 0 and any(_IMAGE in image for image in images)
