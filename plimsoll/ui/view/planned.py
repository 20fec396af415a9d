"""The next Plan as a diff: each operation with its reason, owner and price."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from plimsoll.cost import PlannedCost, Prices, operation_price, planned_cost
from plimsoll.model import Change, Deletion, Owner, Plan, Snapshot
from plimsoll.model.api import WorkspaceRef
from plimsoll.plan.requests import NodeRequest
from plimsoll.ui.view.filter import Filter
from plimsoll.ui.view.owners import OwnerFacts, owner_facts, owner_shown
from plimsoll.yaml_text import write_yaml


@dataclass(frozen=True, slots=True)
class PlanRow:
    sign: str
    """`+` create, `~` update, `-` delete."""
    kind: str
    namespace: str
    names: tuple[str, ...]
    """Those of all operations that differ in nothing else than name and manifest, in the order of the Plan."""
    reason: str
    owner: str
    """`Workspace namespace/name` or `GPUDemand name`."""
    price: float | None
    """Change of the price per hour of all of them; None if it is not known, or the operation is not about a node."""
    manifest: str
    """YAML, of the first of them; empty for a deletion."""

    @property
    def name(self) -> str:
        """That of the first."""
        return self.names[0]

    @property
    def count(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True)
class PlanPage:
    rows: tuple[PlanRow, ...]
    cost: PlannedCost
    withheld: tuple[str, ...]
    """Objects that a policy rule withholds, with the reason."""
    refusals: tuple[tuple[str, str, str], ...]
    """(Workspace, reason, message)"""
    warnings: tuple[str, ...]
    """Those of the plan, without those of the state, which every page shows."""
    deadline: str
    """When the plan may change although the cluster does not; empty if it does not."""


def plan_page(plan: Plan, snapshot: Snapshot, prices: Prices, wanted: Filter) -> PlanPage:
    facts = owner_facts(snapshot, wanted, plan)
    creations, updates, deletions = (
        tuple(each for each in operations if _shown(each, wanted, facts))
        for operations in (plan.creations, plan.updates, plan.deletions)
    )
    signed: Iterable[tuple[str, Change | Deletion]] = (
        *(("+", each) for each in creations),
        *(("~", each) for each in updates),
        *(("-", each) for each in deletions),
    )
    shown = Plan(creations=creations, updates=updates, deletions=deletions)
    return PlanPage(
        rows=tuple(_rows(signed, snapshot, prices)),
        cost=planned_cost(shown, snapshot, prices),
        withheld=tuple(map(str, plan.withheld)),
        refusals=tuple(
            (str(each.workspace), each.reason.value, each.message)
            for each in plan.refusals
            if owner_shown(f"Workspace {each.workspace}", each.workspace.namespace, wanted, facts)
            and wanted.matches_text(str(each.workspace), each.reason.value)
        ),
        warnings=tuple(each for each in dict.fromkeys(plan.warnings) if each not in snapshot.warnings),
        deadline="" if plan.next_deadline is None else plan.next_deadline.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def _rows(signed: Iterable[tuple[str, Change | Deletion]], snapshot: Snapshot, prices: Prices) -> Iterator[PlanRow]:
    """A row for the operations that are alike, where the first of them is."""
    alike: dict[tuple[str, ...], list[tuple[Change | Deletion, float | None]]] = {}
    for sign, operation in signed:
        key, price = operation.key, operation_price(operation, snapshot, prices)
        same = (sign, key.kind, key.namespace, operation.reason, owner_text(operation.owner), str(price))
        alike.setdefault(same, []).append((operation, price))
    for (sign, kind, namespace, reason, owner, _), operations in alike.items():
        first, price = operations[0]
        yield PlanRow(
            sign=sign,
            kind=kind,
            namespace=namespace,
            names=tuple(each.key.name for each, _ in operations),
            reason=reason,
            owner=owner,
            price=None if price is None else price * len(operations),
            manifest=write_yaml(first.manifest) if isinstance(first, Change) else "",
        )


def owner_text(owner: Owner) -> str:
    return f"Workspace {owner}" if isinstance(owner, WorkspaceRef) else str(owner)


def _shown(operation: Change | Deletion, wanted: Filter, facts: Mapping[str, OwnerFacts]) -> bool:
    key, owner = operation.key, owner_text(operation.owner)
    annotations = operation.manifest["metadata"].get("annotations") if isinstance(operation, Change) else None
    request = NodeRequest.from_annotations(annotations or {})
    types = request.instance_types if request is not None else ()
    return owner_shown(owner, operation.owner.namespace or key.namespace, wanted, facts, types) and wanted.matches_text(
        str(key), operation.reason, owner
    )
