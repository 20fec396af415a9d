"""`--fleet FILE`: the clusters of a file, read side by side; one that does not answer says why, and others go on."""

from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml
from pydantic import Field, ValidationError, model_validator
from rich.table import Table
from rich.text import Text

from plimsoll.apply import LAST_DELTA, LEASE_VERSION, LeaseSettings
from plimsoll.cli.shared import OUT, print_table
from plimsoll.cluster.ledger import gpu_ledger
from plimsoll.cost import Prices
from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, RequestError
from plimsoll.labels import INSTANCE_TYPE
from plimsoll.model import Snapshot
from plimsoll.model.api import ConditionType, DemandPhase
from plimsoll.model.meta import Declared, condition_of, describe_errors
from plimsoll.observe.cloud_types import with_cloud_types
from plimsoll.observe.cluster import read_cluster
from plimsoll.packing import GPU_MILLI
from plimsoll.plan.view import ClusterView
from plimsoll.yaml_text import problem_of

SHOWN: Final = ("Environment", "Workspace", "NodeClaim", "NodePool", "Node", "Pod", "GPUDemand")
TITLES: Final = (
    "Cluster", "Environment", "Version", "Lease holder", "Workspaces", "Demand", "GPUs used", "An hour", "Last delta",
)  # fmt: skip
_AT_ONCE: Final = 16
Read = TypeVar("Read")


class FleetCluster(Declared):
    """A cluster of the file."""

    name: str = Field(min_length=1)
    kubeconfig: Path | None = None
    """Relative to the file; absent: the usual one."""
    context: str | None = None


class Fleet(Declared):
    clusters: tuple[FleetCluster, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _names_once(self) -> "Fleet":
        twice = [name for name, number in Counter(each.name for each in self.clusters).items() if number > 1]
        if twice:
            raise ValueError(f"two clusters have the name {twice[0]!r}")
        return self


def read_fleet(path: Path) -> Fleet:
    """Raises PlimsollError that names the file and the field."""
    try:
        content = yaml.safe_load(path.read_text())
        fleet = Fleet.model_validate(content)
    except OSError as error:
        raise PlimsollError(f"{path}: {error.strerror}", "name a file with `clusters`") from None
    except yaml.YAMLError as error:
        raise PlimsollError(f"{path}: {problem_of(error)}", "write it in YAML") from None
    except UnicodeDecodeError as error:
        raise PlimsollError(f"{path}: {error}", "write it in YAML") from None
    except ValidationError as error:
        raise PlimsollError(
            f"{path}: {describe_errors(error)}", "write `clusters`, a list of `name`, `kubeconfig` and `context`"
        ) from None
    return fleet


def of_each(
    fleet: Fleet,
    folder: Path,
    read: Callable[[str, Connection, Snapshot], Read],
    only: Collection[str] | None = None,
    *,
    any_rights: bool = False,
) -> dict[str, Read | PlimsollError]:
    """What `read` makes of each cluster's name, connection and Snapshot, by name in the order of the file, or why it
    could not be read. `folder` is the file's; `only` are names of kinds, by default all; `any_rights` as of
    `read_cluster`."""
    with ThreadPoolExecutor(min(_AT_ONCE, len(fleet.clusters)), thread_name_prefix="fleet") as pool:
        found = pool.map(lambda cluster: _read(cluster, folder, read, only, any_rights), fleet.clusters)
        return {cluster.name: result for cluster, result in zip(fleet.clusters, found, strict=True)}


def _read(
    cluster: FleetCluster,
    folder: Path,
    read: Callable[[str, Connection, Snapshot], Read],
    only: Collection[str] | None,
    any_rights: bool,
) -> Read | PlimsollError:
    try:
        kubeconfig = folder / cluster.kubeconfig if cluster.kubeconfig is not None else None
        with closing(Connection.open(kubeconfig, cluster.context)) as connection:
            snapshot = read_cluster(connection, only, any_rights=any_rights)
            return read(cluster.name, connection, with_cloud_types(snapshot))
    except PlimsollError as error:
        return error


def not_read(name: str, error: PlimsollError) -> dict[str, Any]:
    """The row of a cluster that could not be read."""
    return {"cluster": name, "error": error.message, "hint": error.hint or ""}


def fleet_status(fleet: Fleet, folder: Path) -> list[dict[str, Any]]:
    """A row for each cluster, in the order of the file; `error` is why one could not be read, else empty, and `hint`
    what to do about it."""
    states = of_each(fleet, folder, lambda _, connection, snapshot: _state(snapshot, _lease(connection)), SHOWN)
    return [
        not_read(name, state) if isinstance(state, PlimsollError) else {"cluster": name, **state, "error": ""}
        for name, state in states.items()
    ]


def _lease(connection: Connection) -> dict[str, Any]:
    settings = LeaseSettings()
    try:
        return connection.request(
            "GET",
            f"/apis/coordination.k8s.io/v1/namespaces/{settings.namespace}/leases/{settings.name}",
            retry_throttled=True,
        )
    except RequestError as error:
        if error.code in (403, 404):
            return {}
        raise


def _state(snapshot: Snapshot, lease: dict[str, Any]) -> dict[str, Any]:
    notes = (lease.get("metadata") or {}).get("annotations") or {}
    accounts = gpu_ledger(snapshot).accounts()
    total = sum(account.gpus for account in accounts)
    free = sum(sum(account.free_milli) for account in accounts)
    catalog = ClusterView(snapshot).types.catalog
    names = [claim.labels.get(INSTANCE_TYPE, "") for claim in snapshot.node_claims]
    known = Prices.of_types(catalog.types, snapshot.environment.spec.catalog.currency)
    prices = list(map(known.of_type, names))
    demands = [each.status for each in snapshot.gpu_demands if each.status.phase is not DemandPhase.COMPLETED]
    return {
        "environment": snapshot.environment.name if snapshot.environment.uid else "",
        "version": notes.get(LEASE_VERSION, ""),
        "leaseHolder": (lease.get("spec") or {}).get("holderIdentity") or "",
        "verdicts": dict(sorted(_verdicts(snapshot).items())),
        "demandPods": sum(each.pod_count for each in demands),
        "demandGPUs": sum(each.gpus for each in demands),
        "gpus": total,
        "gpusUsed": round(total - free / GPU_MILLI, 3),
        "costPerHour": round(sum(each for each in prices if each is not None), 4),
        "unknownPrices": sum(each is None for each in prices),
        "prices": known.basis(names).as_json(),
        "basis": str(known.basis(names)),
        "lastDelta": notes.get(LAST_DELTA, ""),
    }


def _verdicts(snapshot: Snapshot) -> Counter[str]:
    found = Counter({"InvalidSpec": len(snapshot.invalid_workspaces)} if snapshot.invalid_workspaces else {})
    for each in snapshot.workspaces:
        ready = condition_of(each.status.conditions, ConditionType.RESOURCE_READY)
        found[ready.reason if ready is not None else "NoVerdict"] += 1
    return found


def print_fleet(rows: list[dict[str, Any]]) -> None:
    table = Table(*TITLES, box=None, pad_edge=False, header_style="bold")
    table.columns[0].no_wrap = True  # a name that is cut is none
    for row in rows:
        if row["error"]:
            table.add_row(Text(row["cluster"]), Text("not read", style="red"), *[""] * (len(TITLES) - 2))
            continue
        verdicts = ", ".join(f"{number} {reason}" for reason, number in row["verdicts"].items())
        demand = f"{row['demandPods']} pods, {row['demandGPUs']} GPUs" if row["demandPods"] else "none"
        unknown = f" + {row['unknownPrices']} unknown" if row["unknownPrices"] else ""
        table.add_row(
            *(Text(row[key]) for key in ("cluster", "environment", "version")),
            Text(row["leaseHolder"] or "nobody", style="" if row["leaseHolder"] else "red"),
            verdicts or "none",
            demand,
            f"{row['gpusUsed']:g} of {row['gpus']}",
            f"{row['costPerHour']:,.2f}{unknown}",
            row["lastDelta"][:19] or "never",
        )
    print_table(table)
    for basis, clusters in groupby(sorted(rows, key=_basis), key=_basis):
        if basis:
            OUT.print(f"{basis} ({', '.join(row['cluster'] for row in clusters)})", highlight=False, soft_wrap=True)
    for row in rows:
        if row["error"]:
            print_not_read(row)


def print_not_read(row: dict[str, Any]) -> None:
    OUT.print(Text.assemble((f"{row['cluster']}: ", "bold"), row["error"]), soft_wrap=True)
    OUT.print(Text(f"  {row['hint']}", style="yellow"), soft_wrap=True)


def _basis(row: dict[str, Any]) -> str:
    """Where the prices of a cluster are from; empty where nothing has one."""
    return str(row["basis"]) if row.get("costPerHour") else ""
