"""Divides a Plan into parts for the stacks."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from plimsoll.apply.errors import PlanMismatchError
from plimsoll.apply.state import State, owner_of
from plimsoll.labels import SHARD
from plimsoll.model import Change, Deletion, ObjectKey, Plan

_CREATIONS_PER_STACK: Final = 125
"""Creations for each of the stacks that a large Plan is distributed over: starting an engine takes about as long as
this many creations."""


@dataclass
class Part:
    """The operations of a Plan for one stack."""

    creations: list[Change] = field(default_factory=list)
    updates: list[Change] = field(default_factory=list)
    deletions: list[Deletion] = field(default_factory=list)

    @property
    def keys(self) -> list[ObjectKey]:
        return _keys(self)


def only(plan: Plan, keys: Container[ObjectKey]) -> Plan:
    """The Plan with only the operations on these objects."""
    return Plan(
        creations=tuple(each for each in plan.creations if each.key in keys),
        updates=tuple(each for each in plan.updates if each.key in keys),
        deletions=tuple(each for each in plan.deletions if each.key in keys),
    )


def require_applicable(plan: Plan) -> None:
    """Raises PlanMismatchError for a Plan that updates of stacks cannot apply as it is."""
    twice = sorted(str(key) for key, count in Counter(_keys(plan)).items() if count > 1)
    if twice:
        raise PlanMismatchError(f"the plan names {twice[0]} in two operations")
    for update in plan.updates:
        if update.key.kind == "NodeClaim":
            raise PlanMismatchError(f"the plan changes {update.key}: a NodeClaim is immutable and can only be deleted")
    for creation in plan.creations:
        if creation.key.kind == "Secret":
            raise PlanMismatchError(f"the plan creates {creation.key}: capacity stacks must not contain Secrets")


def stacks_for(creations: int) -> int:
    """Number of stacks that share this many creations."""
    return max(1, -(-creations // _CREATIONS_PER_STACK))


def assign(
    plan: Plan,
    states: Mapping[str, State],
    ready: Sequence[str],
    room: int,
) -> dict[str, Part]:
    """The parts of the Plan by stack.

    An object that is in a state stays in that stack. Another one that exists goes to the stack that its label names
    (updates), or to the first of `ready`. A new one goes to the stack with the most objects of its owner, or to the
    first of `ready`; many new ones are distributed evenly over `stacks_for` of them. A stack with `room` objects or
    more gets no new ones while another has room. `ready` must not be empty.
    """
    homes = {key: stack for stack, state in states.items() for key in state.resources}
    load = Counter({stack: len(state.resources) for stack, state in states.items()})
    owners: dict[tuple[str, str], Counter[str]] = {}
    for stack, state in states.items():
        for resource in state.resources.values():
            owners.setdefault(resource.owner, Counter())[stack] += 1
    parts: dict[str, Part] = {}

    def part(stack: str) -> Part:
        return parts.setdefault(stack, Part())

    for update in plan.updates:
        part(homes.get(update.key) or _labelled(update.manifest, states) or ready[0]).updates.append(update)
    for deletion in plan.deletions:
        part(homes.get(deletion.key) or ready[0]).deletions.append(deletion)
    fresh = [creation for creation in plan.creations if creation.key not in homes]
    spread = len(fresh) >= _CREATIONS_PER_STACK
    roomy = [name for name in ready if load[name] < room] or ready
    side_by_side = roomy[: stacks_for(len(fresh))] if spread else ready
    for creation in plan.creations:
        if creation.key in homes:
            part(homes[creation.key]).creations.append(creation)
            continue
        owner = owner_of(creation.manifest)
        owner = owner if owner[1] else (creation.owner.namespace, creation.owner.name)
        theirs = owners.setdefault(owner, Counter())
        stacks = side_by_side if any(load[name] < room for name in side_by_side) else ready
        stack = min(stacks, key=lambda name: (load[name] >= room, load[name] if spread else 0))
        if not spread:
            stack = next((each for each, _ in theirs.most_common() if load[each] < room), stack)
        part(stack).creations.append(creation)
        load[stack] += 1
        theirs[stack] += 1
    return parts


def _keys(operations: Plan | Part) -> list[ObjectKey]:
    return [
        *(creation.key for creation in operations.creations),
        *(update.key for update in operations.updates),
        *(deletion.key for deletion in operations.deletions),
    ]


def _labelled(manifest: Mapping[str, object], states: Mapping[str, State]) -> str | None:
    metadata = manifest.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    stack = labels.get(SHARD) if isinstance(labels, dict) else None
    return stack if stack in states else None
