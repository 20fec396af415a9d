"""Reads a cluster once, for commands that look and go."""

from collections.abc import Collection
from typing import Any

from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, RequestError
from plimsoll.labels import GROUP
from plimsoll.model import Snapshot
from plimsoll.observe.cluster.kinds import Kind
from plimsoll.observe.cluster.listing import list_objects
from plimsoll.observe.cluster.snapshots import Stores


def read_cluster(
    connection: Connection, only: Collection[str] | None = None, required: Collection[str] = ()
) -> Snapshot:
    """What the cluster holds now, by lists alone; of the kinds named in `only`, by default of all.

    A custom kind that the cluster does not serve is empty, one of those `required` an error; what the account may not
    see and can be done without is empty with a warning. Raises RequestError and ConnectionFailedError, and what
    `Stores.snapshot` raises.
    """
    stores = Stores()
    warnings: list[str] = []
    for store in stores:
        if only is not None and store.kind.name not in only:
            continue
        try:
            entries, _ = list_objects(connection, store, patient=True)
        except RequestError as error:
            if error.code == 403 and store.kind.without:
                warnings.append(store.kind.lacking(error.message))
                continue
            if error.code != 404 or store.kind.definition is None:
                raise
            if store.kind.name in required:
                raise _not_served(store.kind) from None
            store.served = False
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
