"""What is proposed to a Workspace that names no instance type: the cheapest one that fits, and why it is that one."""

from collections.abc import Iterator
from typing import NamedTuple

from plimsoll.model.api import EnvironmentSpec, NamespaceAccess, Workspace
from plimsoll.model.cluster import InstanceType
from plimsoll.plan.catalog import Candidate, OfferedTypes
from plimsoll.plan.estimating import Estimates, ReplicaNeed
from plimsoll.text import counted, shortlist


class _Field(NamedTuple):
    """The types that may be chosen from, of which those that fit, cheapest first."""

    candidates: tuple[Candidate, ...]
    where: str
    """What they have in common, for people."""


class Proposals:
    """Proposes and makes nothing: to take the type is for people to do."""

    def __init__(self, types: OfferedTypes, environment: EnvironmentSpec, estimates: Estimates) -> None:
        self._types = types
        self._environment = environment
        self._estimates = estimates
        self._fields: dict[object, _Field] = {}

    def of(self, workspace: Workspace, need: ReplicaNeed | None, access: NamespaceAccess | None) -> str:
        """The end of a sentence; empty where nothing says what one replica needs."""
        if need is None or need.need is None:
            return ""
        field = self._field(need, access)
        within = [each for each in field.candidates if self._within_limits(workspace, each)]
        if not within:
            over = " within the limits of the Environment and the Workspace" if field.candidates else ""
            return f"; none of {field.where} fits {need.subject}{over}"
        best = within[0]
        reasons = "; ".join((*best.reasons, *self._for_all(workspace, best)))
        fitting = f"the cheapest of {len(within)} that fit" if len(within) > 1 else "the only one that fits"
        return f", for example {best.type.name}, {fitting}, of {field.where}: {reasons}"

    def _field(self, need: ReplicaNeed, access: NamespaceAccess | None) -> _Field:
        key = (need.need, need.context_length, access)
        found = self._fields.get(key)
        if found is None:
            found = self._fields[key] = self._look(need, access)
        return found

    def _look(self, need: ReplicaNeed, access: NamespaceAccess | None) -> _Field:
        assert need.need is not None
        named = self._types.named_for(access)
        clouds = self._types.clouds(self._environment)
        allowed = None if access is None else access.instance_types
        folded = None if allowed is None else {each.casefold() for each in allowed}

        def allows(kind: InstanceType) -> bool:
            if folded is not None and kind.name.casefold() not in folded:
                return False
            if named is None and clouds and kind.cloud and kind.cloud not in clouds:
                return False
            offered = self._types.find(kind.name)
            if offered is None or self._types.node_class_ref(offered, self._environment, access) is None:
                return False
            restricted = access is not None and access.node_pools is not None
            return not restricted or self._types.pool(offered, access) is not None

        candidates = self._types.catalog.feasible(
            need.need, self._estimates.with_context(need.context_length), names=named, allows=allows
        )
        where = "the types that NodePools and nodes here name" if named is not None else "the known types"
        where += f" of {' and '.join(sorted(clouds))}" if named is None and clouds else ""
        where += f" and the namespace may use ({shortlist(allowed) or 'none'})" if allowed is not None else ""
        return _Field(candidates, where)

    def _within_limits(self, workspace: Workspace, candidate: Candidate) -> bool:
        nodes = candidate.estimate.nodes * workspace.replicas
        limits, own = self._environment.limits, workspace.spec.resource.node_count_limit
        return (
            (limits.nodes is None or nodes <= limits.nodes)
            and (limits.gpus is None or nodes * candidate.type.gpus <= limits.gpus)
            and (own is None or nodes <= own)
        )

    def _for_all(self, workspace: Workspace, candidate: Candidate) -> Iterator[str]:
        if workspace.replicas < 2:
            return
        nodes = candidate.estimate.nodes * workspace.replicas
        price = candidate.price_per_hour
        cost = "" if price is None else f", {price * workspace.replicas:.4g} an hour"
        yield f"{workspace.replicas} replicas: {counted(nodes, 'node')}{cost}"
