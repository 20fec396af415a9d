"""The next Plan as a diff: each operation with its reason, owner and price."""

from collections.abc import Iterable, Mapping
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
    name: str
    reason: str
    owner: str
    """`Workspace namespace/name` or `GPUDemand name`."""
    price: float | None
    """Change of the price per hour; None if it is not known, or the operation is not about a node."""
    manifest: str
    """YAML; empty for a deletion."""


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
        rows=tuple(_row(sign, each, snapshot, prices) for sign, each in signed),
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


def _row(sign: str, operation: Change | Deletion, snapshot: Snapshot, prices: Prices) -> PlanRow:
    return PlanRow(
        sign=sign,
        kind=operation.key.kind,
        namespace=operation.key.namespace,
        name=operation.key.name,
        reason=operation.reason,
        owner=owner_text(operation.owner),
        price=operation_price(operation, snapshot, prices),
        manifest=write_yaml(operation.manifest) if isinstance(operation, Change) else "",
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
