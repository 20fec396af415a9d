"""Allocates matching BYO nodes to Workspaces; no node is allocated to two.

Whole nodes are allocated, enough for whole replicas: first the nodes on which the Workspace's pods run, then those in
its status (`workerNodes`), then free ones; in each step, older Workspaces go first, then by namespace and name. A
Workspace that gets no whole replica keeps no node from the others. Workspaces whose pods request part of a node
(`resource.partition`) share nodes with each other, and with no others. What is free then is counted for the pods that a
rollout has more than replicas: first of those that have begun.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from plimsoll.cluster.nodes import gpu_devices
from plimsoll.cluster.pods import Owner, workspace_key
from plimsoll.estimating import Sizing
from plimsoll.model import Reason, Refusal
from plimsoll.model.api import Workspace
from plimsoll.plan.view import ClusterView
from plimsoll.text import SHOWN, counted, shortlist

Key = tuple[str, str]


def allocate(view: ClusterView, sizings: Mapping[Key, Sizing]) -> dict[Key, Sizing | Refusal]:
    """The sizings with the nodes that are allocated to each Workspace; a refusal where not a single node is free.

    Left out are Workspaces that need no node, and those that are being deleted.
    """
    snapshot = view.snapshot
    shares = [
        _Share(workspace, sizing, snapshot.environment.spec.gpu_resource)
        for workspace in view.by_age
        if not workspace.deleting and (sizing := sizings.get(workspace.key)) is not None and sizing.target
    ]
    allocation = _Allocation(view, shares, strict=snapshot.environment.spec.partial_replicas == "refuse")
    for share in shares:
        allocation.keep_running(share)
    for share in shares:
        allocation.keep_recorded(share)
    for share in shares:
        allocation.complete(share)
    outcomes = {share.workspace.key: allocation.outcome(share) for share in shares}
    surging = [share for share in shares if share.workspace.surge]
    for share in sorted(surging, key=lambda share: share.workspace.key not in view.rolling):
        key = share.workspace.key
        outcome = outcomes[key]
        if isinstance(outcome, Sizing):
            outcomes[key] = allocation.surge(share, outcome, rolling=key in view.rolling)
    return outcomes


class _Share:
    """The nodes that one Workspace needs and is allocated; counted in pods where pods request part of a node."""

    def __init__(self, workspace: Workspace, sizing: Sizing, gpu_resource: str) -> None:
        self.workspace = workspace
        self.sizing = sizing
        self.resource = sizing.resource or gpu_resource
        self.parted = bool(sizing.pods_per_node)
        self.per_replica = 1 if self.parted else sizing.per_replica
        self.wanted = workspace.replicas if self.parted else sizing.target
        self.given: dict[str, int] = {}

    @property
    def units(self) -> int:
        return sum(self.given.values()) if self.parted else len(self.given)

    @property
    def missing(self) -> int:
        return max(self.wanted - self.units, 0)

    def whole(self, more: int) -> int:
        """How many of `more` further nodes complete replicas."""
        available = self.units + more
        return (
            more if available >= self.wanted else max(available // self.per_replica * self.per_replica - self.units, 0)
        )


class _Allocation:
    def __init__(self, view: ClusterView, shares: list[_Share], *, strict: bool) -> None:
        self._strict = strict
        self._index = view.index
        self._usage = view.usage
        self._parted: set[Owner] = {workspace_key(share.workspace) for share in shares if share.parted}
        self._owners: dict[str, _Share] = {}
        """The share that each node is allocated to; of several that share it, the first."""
        self._devices: dict[tuple[str, str], int] = {}
        """Allocated devices by (node, resource), for nodes that are allocated in parts."""
        # Workspaces with the same selector have the same tuple, which `shares` keeps alive: its id identifies it.
        self._usable: dict[int, frozenset[str]] = {}
        self._first_free: dict[int, int] = {}

    def keep_running(self, share: _Share) -> None:
        """Allocates nodes on which the Workspace's pods run, as many as it needs."""
        used = self._usage.own(share.workspace)
        for name in self._usable_of(share, used):
            if share.parted:
                self._give(share, name, min(used[name], share.missing))
            elif share.missing and name not in self._owners:
                self._give(share, name)

    def keep_recorded(self, share: _Share) -> None:
        """Allocates free nodes that the Workspace's status names, for whole replicas."""
        named = dict.fromkeys(share.workspace.status.worker_nodes)
        if share.missing and named:
            self._give_free(share, self._usable_of(share, named))

    def complete(self, share: _Share) -> None:
        """Allocates free nodes for what is still missing."""
        if share.missing:
            self._give_free(share, self._from_first_free(share.sizing.node_names))

    def outcome(self, share: _Share) -> Sizing | Refusal:
        """The result, once all nodes are allocated."""
        if not share.given and not any(self._has_room(share, name) for name in share.sizing.node_names):
            return self._none_free(share)
        return self._result(share)

    def surge(self, share: _Share, sizing: Sizing, *, rolling: bool) -> Sizing:
        """With what is free for the pods of a rollout; while it is rolling, their nodes are allocated."""
        before = share.units
        if not share.missing:
            used = self._usable_of(share, self._usage.own(share.workspace))
            share.wanted += share.workspace.temporary_nodes
            self._give_free(share, dict.fromkeys((*used, *sizing.node_names)))
        surge = share.units - before
        allocated = tuple(sorted(share.given)) if rolling else sizing.allocated
        warnings = sizing.warnings
        if not surge:
            waits = "its new pods wait" if rolling else "new pods of another template wait"
            warnings += (
                f"inference.rollout.strategy is Surge, and no node is free: {waits} until one is, and the old ones "
                "serve; label another node, or set the strategy to Recreate",
            )
        return sizing._replace(surge=surge, allocated=allocated, warnings=warnings)

    def _from_first_free(self, names: tuple[str, ...]) -> Iterable[str]:
        """The names without the allocated ones at the start; nodes stay allocated until the end of the round."""
        first = self._first_free.get(id(names), 0)
        while (
            first < len(names)
            and (owner_share := self._owners.get(names[first])) is not None
            and not owner_share.parted
        ):
            first += 1
        self._first_free[id(names)] = first
        return islice(names, first, None)

    def _give_free(self, share: _Share, names: Iterable[str]) -> None:
        """Allocates the free nodes among the names, as far as they complete replicas."""
        if share.parted:
            for name in names:
                self._give(share, name, min(self._room(share, name), share.missing))
                if not share.missing:
                    break
            return
        free = list(islice((name for name in names if self._free(share, name)), share.missing))
        for name in free[: share.whole(len(free))]:
            self._give(share, name)

    def _give(self, share: _Share, name: str, units: int = 1) -> None:
        if units <= 0:
            return
        share.given[name] = share.given.get(name, 0) + units
        self._owners.setdefault(name, share)
        if share.parted:
            key = (name, share.resource)
            self._devices[key] = self._devices.get(key, 0) + units * (share.sizing.devices or 0)

    def _usable_of(self, share: _Share, names: Mapping[str, object]) -> list[str]:
        """The names that are usable for the Workspace, sorted."""
        if not names:
            return []
        usable = share.sizing.node_names
        known = self._usable.get(id(usable))
        if known is None:
            known = self._usable[id(usable)] = frozenset(usable)
        return sorted(known & names.keys())

    def _free(self, share: _Share, name: str) -> bool:
        """Whether the whole node can be allocated: it is not allocated, and enough devices are free."""
        if name in self._owners:
            return False
        others = self._usage.others(name, share.workspace, share.resource)
        if not others:
            return True
        if any(use.owner is not None for use in others):
            return False
        return self._capacity(share, name) - sum(use.devices for use in others) >= (share.sizing.requested or 0)

    def _has_room(self, share: _Share, name: str) -> bool:
        return self._room(share, name) > 0 if share.parted else self._free(share, name)

    def _room(self, share: _Share, name: str) -> int:
        """Number of the Workspace's pods for which the node has room, where pods request part of a node."""
        owner_share = self._owners.get(name)
        if owner_share is not None and not owner_share.parted:
            return 0
        others = [
            use
            for use in self._usage.others(name, share.workspace, share.resource)
            if use.owner is None or use.owner not in self._parted
        ]
        if any(use.owner is not None and not use.devices for use in others):
            return 0
        used = sum(use.devices for use in others) + self._devices.get((name, share.resource), 0)
        return max(self._capacity(share, name) - used, 0) // max(share.sizing.devices or 0, 1)

    def _capacity(self, share: _Share, name: str) -> int:
        known = gpu_devices(self._index.by_name[name], share.resource)
        if known is not None:
            return known
        return (share.sizing.devices or 0) * max(share.sizing.pods_per_node, 1)

    def _result(self, share: _Share) -> Sizing | Refusal:
        given = tuple(sorted(share.given))
        sizing = share.sizing._replace(allocated=given)
        if not share.missing:
            return sizing
        wanted, available = (
            (counted(share.wanted, "pod"), f"room for {share.units}")
            if share.parted
            else (counted(share.wanted, "node"), f"{share.units} allocated")
        )
        taken = list(islice(self._taken(share), SHOWN + 1))
        why = f"; in use: {shortlist(taken, SHOWN)}" if taken else ""
        can = f", {share.units // share.per_replica} of {counted(share.workspace.replicas, 'replica')} can start"
        if share.workspace.spec.inference is None:
            can = ""
        warning = f"{wanted} needed, {available} of {len(sizing.node_names)} usable{can}{why}: pods may stay Pending"
        if self._strict:
            return Refusal(
                Reason.NO_FREE_NODES,
                f"{wanted} needed, {available} of {len(sizing.node_names)} usable{can}{why}, and partialReplicas of "
                "the Environment is 'refuse': lower inference.replicas, or label more nodes",
            )
        startable = share.units if share.per_replica == 1 and self._contended(share) else None
        return sizing._replace(startable=startable, warnings=(*sizing.warnings, warning))

    def _none_free(self, share: _Share) -> Refusal:
        names = share.sizing.node_names
        which = "the only usable node" if len(names) == 1 else f"none of the {len(names)} usable nodes"
        state = "is not free" if len(names) == 1 else "is free"
        taken = list(islice(self._taken(share), SHOWN))
        more = f" and {len(names) - len(taken)} more" if len(names) > len(taken) else ""
        return Refusal(
            Reason.NO_FREE_NODES,
            f"No free node: {which} that labelSelector {str(share.workspace.spec.resource.label_selector)!r} matches "
            f"{state}: {', '.join(taken)}{more}; label more nodes, or delete a Workspace that uses one",
        )

    def _contended(self, share: _Share) -> bool:
        """Whether another Workspace has one of the nodes, or pods on it. Pending pods could take those nodes after a
        restart."""
        return any(
            ((owner_share := self._owners.get(name)) is not None and owner_share is not share)
            or any(use.owner for use in self._usage.others(name, share.workspace, share.resource))
            for name in share.sizing.node_names
        )

    def _taken(self, share: _Share) -> Iterator[str]:
        """Usable nodes that are in use by others, with the user of each."""
        for name in share.sizing.node_names:
            if name in share.given:
                continue
            owner_share = self._owners.get(name)
            if owner_share is not None and owner_share is not share:
                yield f"{name} by Workspace {owner_share.workspace.ref}"
                continue
            uses = self._usage.others(name, share.workspace, share.resource)
            if uses:
                users = [
                    f"pod {use.pod}" + (f" of Workspace {'/'.join(use.owner)}" if use.owner else "") for use in uses
                ]
                devices = sum(use.devices for use in uses)
                yield f"{name} by {shortlist(users)} ({devices} of {self._capacity(share, name)} {share.resource})"
