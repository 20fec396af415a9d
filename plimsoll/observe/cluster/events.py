"""The Events about one object."""

from typing import Any

from plimsoll.kube import Connection, RequestError

SHOWN = 10


def events_about(connection: Connection, kind: str, namespace: str, name: str) -> list[dict[str, Any]]:
    """The ten newest Events, newest first, each with `time`, `type`, `reason`, `note` and `count`. An object without a
    namespace has its Events in `default`.

    Empty if the account may not read events. Raises RequestError on other errors.
    """
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace or 'default'}/events"
    query = {"fieldSelector": f"regarding.kind={kind},regarding.name={name}"}
    try:
        items = connection.request("GET", path, query=query, retry_throttled=True)["items"]
    except RequestError as error:
        if error.code == 403:
            return []
        raise
    found = [_event(item) for item in items if isinstance(item, dict)]
    return sorted(found, key=lambda each: str(each["time"]), reverse=True)[:SHOWN]


def _event(item: dict[str, Any]) -> dict[str, Any]:
    series = item.get("series") or {}
    return {
        "time": series.get("lastObservedTime")
        or item.get("eventTime")
        or item["metadata"].get("creationTimestamp", ""),
        "type": item.get("type", ""),
        "reason": item.get("reason", ""),
        "note": item.get("note", ""),
        "count": series.get("count", 1),
    }
