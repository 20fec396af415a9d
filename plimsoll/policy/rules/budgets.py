"""Rules on totals: the GPUs and the price of an environment, of each queue and of each NodePool."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field

from plimsoll.labels import GROUP, NODEPOOL
from plimsoll.model.meta import Declared, Finding, Severity, section
from plimsoll.policy.context import PolicyContext
from plimsoll.policy.fields import Manifest, is_kind, join, labels_of, name_of, text
from plimsoll.policy.rule import Family, Needs, Rule
from plimsoll.policy.rules.claimed_gpus import ClaimedGpus
from plimsoll.policy.rules.gpu_holdings import Holding, InstanceTypes, demand, supply
from plimsoll.policy.rules.training import Runtimes

GPU_RULE: Final = "gpu-budget"
PRICE_RULE: Final = "price-budget"
_READS: Final = (
    *("Workspace", "InferenceSet", "NodePool", "NodeClaim", "TrainJob", "objects with a pod template"),
    *("ResourceClaim", "ResourceClaimTemplate", "DeviceClass"),
)

Devices = Annotated[float, Field(ge=0)]
Price = Annotated[float, Field(ge=0)]
Gpus = Annotated[int, Field(ge=0)]


class GpuBudget(Declared):
    """GPU devices; a share counts as its fraction, and one by `gpu-memory`, whose GPU is not known, as none."""

    environment: Devices | None = None
    """Absent: the Environment's `limits.gpus`."""
    queues: dict[str, Devices] = Field(default_factory=dict)
    pools: dict[str, Devices] = Field(default_factory=dict)
    instance_types: dict[str, Gpus] = Field(default_factory=dict)
    """GPUs of one instance, by instance type; they take precedence over the catalog."""


class PriceBudget(Declared):
    """Prices per hour, in one currency."""

    environment: Price | None = None
    queues: dict[str, Price] = Field(default_factory=dict)
    pools: dict[str, Price] = Field(default_factory=dict)
    prices: dict[str, Price] = Field(default_factory=dict)
    """By instance type; absent: those of the Environment's catalog."""


class _Total(NamedTuple):
    kind: str
    name: str
    field: str
    budget: float
    what: str
    amount: float | None
    """None: not known."""
    unknown: tuple[str, ...]
    """Instance types whose GPUs are not known."""


def gpu_findings(manifests: Sequence[Manifest], context: PolicyContext, options: GpuBudget) -> Iterator[Finding]:
    holdings = _Holdings(manifests, context, context.prices, options.instance_types)
    environment = options.environment if options.environment is not None else context.gpu_limit
    for each in holdings.totals(environment, options, _gpus, context):
        if each.amount is None:
            yield _finding(
                GPU_RULE,
                each,
                f"{each.what} an unlimited number of GPUs, and the budget is {each.budget:g}: set a limit of at most "
                f"{each.budget:g}",
            )
        elif each.amount > each.budget:
            yield _finding(
                GPU_RULE,
                each,
                f"{each.what} {each.amount:g} GPUs, and the budget is {each.budget:g}: request "
                f"{each.amount - each.budget:g} fewer, or raise the budget",
            )
        elif each.unknown and (each.kind != "Environment" or options.environment is not None):
            # The controller, which knows the types of nodes and of EC2's API, keeps the Environment's own limit.
            yield _finding(
                GPU_RULE,
                each,
                f"{each.what} instance types whose GPUs are not known ({', '.join(each.unknown)}), and the budget is "
                f"{each.budget:g}: add their GPUs to the option `instanceTypes`",
            )


def price_findings(manifests: Sequence[Manifest], context: PolicyContext, options: PriceBudget) -> Iterator[Finding]:
    holdings = _Holdings(manifests, context, options.prices or context.prices)
    for each in holdings.totals(options.environment, options, _price, context):
        if each.amount is None:
            yield _finding(
                PRICE_RULE,
                each,
                f"{each.what} instance types without a known price, or no limit, and the budget is {each.budget:g} an "
                "hour: add their prices to the option `prices`, and set a limit",
            )
        elif each.amount > each.budget:
            yield _finding(
                PRICE_RULE,
                each,
                f"{each.what} {each.amount:.2f} an hour, and the budget is {each.budget:g}: request less, or raise the "
                "budget",
            )


class _Holdings:
    def __init__(
        self,
        manifests: Sequence[Manifest],
        context: PolicyContext,
        prices: Mapping[str, float],
        gpus: Mapping[str, int] | None = None,
    ) -> None:
        pools = {name_of(each): each for each in manifests if is_kind(each, "karpenter.sh", "NodePool")}
        known = InstanceTypes(prices, gpus, pools.values())
        resource = context.gpu_resource
        runtimes, claimed = Runtimes(manifests), ClaimedGpus(manifests)
        self._environment = next((name_of(each) for each in manifests if is_kind(each, GROUP, "Environment")), "")
        self._demand = [each for one in manifests for each in demand(one, known, resource, runtimes, claimed)]
        static = {name: each for name, each in pools.items() if section(each, "spec").get("replicas") is not None}
        claims = [each for each in manifests if is_kind(each, "karpenter.sh", "NodeClaim")]

        def without(counted: Mapping[str, Manifest]) -> list[Manifest]:
            """The NodeClaims that are not of these NodePools, which count them already."""
            return [each for each in claims if text(labels_of(each), NODEPOOL) not in counted]

        self._pools = [each for one in (*pools.values(), *without(pools)) for each in supply(one, known, resource)]
        self._supply = [each for one in (*static.values(), *without(static)) for each in supply(one, known, resource)]

    def totals(
        self,
        environment: float | None,
        options: GpuBudget | PriceBudget,
        amount: Callable[[Sequence[Holding]], float | None],
        context: PolicyContext,
    ) -> Iterator[_Total]:
        """What each budget is compared with. An environment: the larger of what workloads request and nodes have."""
        for pool, budget in sorted(options.pools.items()):
            matching = [each for each in self._pools if each.pool == pool]
            if matching:
                field = join("spec.limits", context.gpu_resource)
                yield _Total("NodePool", pool, field, budget, "its limits allow", amount(matching), _unknown(matching))
        for queue, budget in sorted(options.queues.items()):
            matching = [each for each in self._demand if each.queue == queue]
            if matching:
                what = "its workloads request"
                yield _Total("Queue", queue, "", budget, what, amount(matching), _unknown(matching))
        if environment is not None and (self._demand or self._supply):
            both = [amount(self._demand), amount(self._supply)]
            known = [each for each in both if each is not None]
            largest = max(known) if len(known) == len(both) else None
            unknown = _unknown([*self._demand, *self._supply])
            what = "its objects request"
            yield _Total("Environment", self._environment, "", environment, what, largest, unknown)


def _gpus(holdings: Sequence[Holding]) -> float | None:
    amounts = [each.gpus for each in holdings]
    return None if None in amounts else float(sum((each for each in amounts if each is not None), Decimal(0)))


def _unknown(holdings: Sequence[Holding]) -> tuple[str, ...]:
    return tuple(sorted({name for each in holdings for name in each.unknown}))


def _price(holdings: Sequence[Holding]) -> float | None:
    amounts = [each.price for each in holdings if each.of_nodes]
    return None if None in amounts else sum(each for each in amounts if each is not None)


def _finding(rule: str, total: _Total, message: str) -> Finding:
    subject = f"{total.kind} {total.name}".strip()
    return Finding(total.kind, "", total.name, total.field, rule, Severity.ERROR, f"{subject}: {message}")


def _rule(name: str, summary: str, options: type[Declared], check_all: Any) -> Rule:
    return Rule(
        name,
        Family.BUDGETS,
        summary,
        "Request less, or raise the budget in the rule's options.",
        _READS,
        check_all=check_all,
        options=options,
        needs=Needs.ENVIRONMENT,
    )


RULES: Final = (
    _rule(
        GPU_RULE,
        "The GPUs of the environment, of each queue and of each NodePool stay within their budgets.",
        GpuBudget,
        gpu_findings,
    ),
    _rule(
        PRICE_RULE,
        "The price of the environment, of each queue and of each NodePool stays within their budgets.",
        PriceBudget,
        price_findings,
    ),
)
