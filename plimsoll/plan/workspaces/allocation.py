"""Which of the brought nodes that match belong to which Workspace: no node is given to two.

Given are whole nodes, as many as whole replicas take: first those on which the Workspace's pods are, then those that
its status names (`workerNodes`), then free ones, each step in the order of age, namespace and name. One that finds no
whole replica keeps no node from the others. Workspaces whose pods ask for a part of a node (`resource.partition`) share
nodes with each other, and with no others.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from plimsoll.model import Reason, Refusal
from plimsoll.model.api import Workspace
from plimsoll.plan.estimating import Sizing
from plimsoll.plan.nodes import gpu_devices
from plimsoll.plan.owned import by_age
from plimsoll.plan.pods import Owner, owner_of
from plimsoll.plan.view import ClusterView
from plimsoll.text import SHOWN, counted, shortlist

Key = tuple[str, str]


def allocate(view: ClusterView, sizings: Mapping[Key, Sizing]) -> dict[Key, Sizing | Refusal]:
    """The sizings with the nodes that each Workspace is given, a refusal where not one node is free for it.

    Left out are those that want no node, and those under deletion.
    """
    snapshot = view.snapshot
    shares = [
        _Share(workspace, sizing, snapshot.environment.spec.gpu_resource)
        for workspace in sorted(snapshot.workspaces, key=by_age)
        if not workspace.deleting and (sizing := sizings.get(workspace.key)) is not None and sizing.target
    ]
    allocation = _Allocation(view, shares)
    for share in shares:
        allocation.keep_running(share)
    for share in shares:
        allocation.keep_recorded(share)
    for share in shares:
        allocation.complete(share)
    return {share.workspace.key: allocation.outcome(share) for share in shares}


class _Share:
    """What one Workspace wants and is given: nodes, or room for pods where these ask for a part of a node."""

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
        """How many of so many more nodes make replicas whole."""
        there = self.units + more
        return more if there >= self.wanted else max(there // self.per_replica * self.per_replica - self.units, 0)


class _Allocation:
    def __init__(self, view: ClusterView, shares: list[_Share]) -> None:
        self._index = view.index
        self._usage = view.usage
        self._parted: set[Owner] = {owner_of(share.workspace) for share in shares if share.parted}
        self._owners: dict[str, _Share] = {}
        """Who has a node; of several that share it the first."""
        self._devices: dict[tuple[str, str], int] = {}
        """Devices of a node and a resource that are given in parts."""
        # Surveys give one tuple to all who select alike, and `shares` keeps it: its identity tells the selection.
        self._usable: dict[int, frozenset[str]] = {}
        self._first_free: dict[int, int] = {}

    def keep_running(self, share: _Share) -> None:
        """Nodes where its pods are, as many as it wants."""
        own = self._usage.own(share.workspace)
        for name in self._usable_of(share, own):
            if share.parted:
                self._give(share, name, min(own[name], share.missing))
            elif share.missing and name not in self._owners:
                self._give(share, name)

    def keep_recorded(self, share: _Share) -> None:
        """Nodes that its status names, if nobody else is there, for whole replicas."""
        named = dict.fromkeys(share.workspace.status.worker_nodes)
        if share.missing and named:
            self._give_free(share, self._usable_of(share, named))

    def complete(self, share: _Share) -> None:
        """Free nodes for what is missing yet."""
        if share.missing:
            self._give_free(share, self._from_first_free(share.sizing.node_names))

    def outcome(self, share: _Share) -> Sizing | Refusal:
        """What became of it, once all have their nodes."""
        if not share.given and not any(self._has_room(share, name) for name in share.sizing.node_names):
            return self._none_free(share)
        return self._result(share)

    def _from_first_free(self, names: tuple[str, ...]) -> Iterable[str]:
        """The names without those at the head that are given: what is once, is to the end of the round."""
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
        """Gives what is free of these names, as far as it makes replicas whole."""
        if share.parted:
            for name in names:
                self._give(share, name, min(self._room(share, name), share.missing))
                if not share.missing:
                    break
            return
        found = list(islice((name for name in names if self._free(share, name)), share.missing))
        for name in found[: share.whole(len(found))]:
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
        """Those of the names that are usable for the Workspace, sorted."""
        if not names:
            return []
        usable = share.sizing.node_names
        found = self._usable.get(id(usable))
        if found is None:
            found = self._usable[id(usable)] = frozenset(usable)
        return sorted(found & names.keys())

    def _free(self, share: _Share, name: str) -> bool:
        """Whether the Workspace may have the node for itself: nobody has it, and its pods find their devices."""
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
        """Pods of a Workspace that takes parts of nodes for which the node has room."""
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

    def _result(self, share: _Share) -> Sizing:
        given = tuple(sorted(share.given))
        sizing = share.sizing._replace(allocated=given)
        if not share.missing:
            return sizing
        wanted, there = (
            (counted(share.wanted, "pod"), f"room for {share.units}")
            if share.parted
            else (counted(share.wanted, "node"), f"{share.units} allocated")
        )
        taken = list(islice(self._taken(share), SHOWN + 1))
        why = f"; taken: {shortlist(taken, SHOWN)}" if taken else ""
        warning = f"{wanted} wanted, {there} of {len(sizing.node_names)} usable{why}: pods may stay Pending"
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
            f"{state}: {', '.join(taken)}{more}; label more nodes, or have one given up",
        )

    def _contended(self, share: _Share) -> bool:
        """Whether a sibling has one of the nodes, or pods there: pods that wait would take them when it restarts."""
        return any(
            ((owner_share := self._owners.get(name)) is not None and owner_share is not share)
            or any(use.owner for use in self._usage.others(name, share.workspace, share.resource))
            for name in share.sizing.node_names
        )

    def _taken(self, share: _Share) -> Iterator[str]:
        """Usable nodes that others have, with who that is."""
        for name in share.sizing.node_names:
            if name in share.given:
                continue
            owner_share = self._owners.get(name)
            if owner_share is not None and owner_share is not share:
                yield f"{name} by Workspace {owner_share.workspace.ref}"
                continue
            uses = self._usage.others(name, share.workspace, share.resource)
            if uses:
                said = [
                    f"pod {use.pod}" + (f" of Workspace {'/'.join(use.owner)}" if use.owner else "") for use in uses
                ]
                devices = sum(use.devices for use in uses)
                yield f"{name} by {shortlist(said)} ({devices} of {self._capacity(share, name)} {share.resource})"
