"""What an environment allows: limits over all that the engine makes, and what a namespace may use."""

from collections.abc import Iterable

from plimsoll.model.environment import EnvironmentSpec
from plimsoll.model.node_claim import NodeClaim
from plimsoll.model.quantity import parse_devices
from plimsoll.model.verdict import Reason
from plimsoll.model.workspace import Workspace
from plimsoll.plan.catalog import Catalog
from plimsoll.plan.refusal import Refusal
from plimsoll.plan.shortlist import shortlist


def claim_gpus(claim: NodeClaim, resource: str, catalog: Catalog) -> int:
    """GPU devices that a NodeClaim stands for: those it requests, else those of its instance type."""
    resources = claim.spec.get("resources")
    requests = resources.get("requests") if isinstance(resources, dict) else None
    amount = requests.get(resource) if isinstance(requests, dict) else None
    if amount is not None:
        try:
            return parse_devices(amount)
        except ValueError:
            pass
    known = [listed for name in claim.instance_types if (listed := catalog.lookup(name)) is not None]
    return max((listed.gpus for listed in known), default=0)


class Budget:
    """GPU devices and NodeClaims that are left under the environment's limits."""

    def __init__(self, environment: EnvironmentSpec, claims: Iterable[NodeClaim], catalog: Catalog) -> None:
        limits = environment.limits
        self._limits = {"gpus": limits.gpus, "nodes": limits.nodes}
        self._used = {"gpus": 0, "nodes": 0}
        for claim in claims:
            self._used["nodes"] += 1
            self._used["gpus"] += claim_gpus(claim, environment.gpu_resource, catalog)

    def short(self, nodes: int, gpus_each: int) -> str:
        """Which limit so many nodes would exceed; empty where none."""
        for name, amount in (("gpus", nodes * gpus_each), ("nodes", nodes)):
            limit = self._limits[name]
            if amount and limit is not None and self._used[name] + amount > limit:
                return f"limits.{name} of the Environment is {limit}, {self._used[name]} in use, {amount} more wanted"
        return ""

    def take(self, nodes: int, gpus_each: int) -> None:
        self._used["nodes"] += nodes
        self._used["gpus"] += nodes * gpus_each


class NamespaceBudget:
    """GPU devices that the Workspaces of each namespace hold, against `access[].gpus`."""

    def __init__(self, environment: EnvironmentSpec, held: dict[str, int]) -> None:
        self._environment = environment
        self._held = dict(held)

    def short(self, namespace: str, gpus: int) -> str:
        """What keeps the namespace from so many GPUs more; empty where nothing does."""
        access = self._environment.access_of(namespace)
        held = self._held.get(namespace, 0)
        if access is not None and access.gpus is not None and gpus and held + gpus > access.gpus:
            return (
                f"access.gpus of the Environment lets namespace {namespace!r} have {access.gpus} GPUs, {held} in use, "
                f"{gpus} more wanted"
            )
        return ""

    def take(self, namespace: str, gpus: int) -> None:
        self._held[namespace] = self._held.get(namespace, 0) + gpus


def forbidden(workspace: Workspace, environment: EnvironmentSpec) -> Refusal | None:
    """What the Workspace's namespace may not use of what it asks for."""
    namespace = workspace.namespace
    try:
        access = environment.access_of(namespace)
    except KeyError:
        return Refusal(
            Reason.NOT_ALLOWED,
            f"namespace {namespace!r} may use nothing here: no entry of the Environment's access names it or '*'",
        )
    if access is None:
        return None
    queue = workspace.spec.queue
    if queue is not None and access.queues is not None and queue not in access.queues:
        return Refusal(
            Reason.NOT_ALLOWED,
            f"namespace {namespace!r} may not use queue {queue!r}: allowed are {shortlist(access.queues) or 'none'}",
        )
    name = workspace.spec.resource.instance_type
    allowed = access.instance_types
    if name is None or allowed is None or not environment.auto_provisioning:
        return None
    if name.casefold() not in {each.casefold() for each in allowed}:
        return Refusal(
            Reason.NOT_ALLOWED,
            f"namespace {namespace!r} may not use instance type {name!r}: allowed are {shortlist(allowed) or 'none'}",
        )
    return None


def reserved_keys(keys: Iterable[str], prefixes: tuple[str, ...]) -> list[str]:
    """Label keys that the environment keeps for itself, sorted."""
    return sorted(key for key in keys if key.startswith(prefixes))
