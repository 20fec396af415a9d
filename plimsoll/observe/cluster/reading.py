"""Reads the state of a cluster once, without watches."""

from collections.abc import Collection
from typing import Any, Final

from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, RequestError
from plimsoll.labels import GROUP
from plimsoll.model import Snapshot
from plimsoll.observe.cluster.kinds import (
    DEVICE_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Kind,
)
from plimsoll.observe.cluster.listing import list_objects
from plimsoll.observe.cluster.snapshots import Stores
from plimsoll.observe.cluster.unread import without

_JOINED: Final = frozenset({"Node", "Pod"})
_WITH_JOINED: Final = tuple(
    kind.name for kind in (RESOURCE_SLICES, DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES)
)


def read_cluster(
    connection: Connection,
    only: Collection[str] | None = None,
    required: Collection[str] = (),
    *,
    any_rights: bool = False,
) -> Snapshot:
    """The current state of the cluster, by lists; `only` restricts the kinds by name.

    A kind that the cluster does not serve, as it is custom or newer, counts as empty, unless it is in `required`. An
    optional kind that the account may not list counts as empty, with a warning. With `any_rights`, for those who only
    judge what they see, each kind that it may not list does, unless it may list neither nodes nor pods. Nodes and pods
    are read with their devices and claims. Raises RequestError, ConnectionFailedError, and the errors of
    `Stores.snapshot`.
    """
    stores = Stores()
    warnings: list[str] = []
    if only is not None and not _JOINED.isdisjoint(only):
        only = {*only, *_WITH_JOINED}
    for store in stores:
        stores.locate_requests()
        if only is not None and store.kind.name not in only:
            continue
        try:
            entries, _ = list_objects(connection, store, retry_throttled=True)
        except RequestError as error:
            if error.code == 403 and (any_rights or store.kind.if_forbidden):
                stores.unread.add(store.kind.name)
                warning = without(store.kind, stores.unread) if any_rights else ""
                warnings.append(warning or store.kind.forbidden_warning(error.message))
                continue
            if error.code != 404 or (store.kind.definition is None and not store.kind.since):
                raise
            if store.kind.name in required:
                raise _not_served(store.kind) from None
            store.served = bool(store.kind.since)
        else:
            store.replace(entries)
    return stores.snapshot(tuple(warnings))


def _not_served(kind: Kind[Any]) -> PlimsollError:
    return PlimsollError(
        f"the cluster does not know the kind {kind.name} ({kind.definition}, {kind.api_version})",
        "deploy the foundation stack, which defines it"
        if str(kind.definition).endswith(f".{GROUP}")
        else "install the component that defines it, or read manifests with -f",
    )
