"""How many GPUs objects request or may have, and what they cost: what budgets are compared with."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from plimsoll.cluster.catalog import Catalog
from plimsoll.labels import GPU_COUNT, GPU_RESOURCE, INSTANCE_TYPE, NODEPOOL, QUEUE
from plimsoll.model.cluster import VENDOR_RESOURCES
from plimsoll.model.kai import GPU_FRACTION, GPU_FRACTION_DEVICES
from plimsoll.model.meta import section
from plimsoll.policy.fields import Manifest, is_kind, is_list, items, labels_of, name_of, text
from plimsoll.policy.pod_templates import PodTemplate, count_of, pod_templates
from plimsoll.policy.rules.capacity_pods import is_capacity_pod
from plimsoll.policy.rules.claimed_gpus import ClaimedGpus
from plimsoll.policy.rules.node_pools import is_gpu_pool, sizes
from plimsoll.policy.rules.training import Runtimes, is_runtime, is_train_job
from plimsoll.policy.workspaces import workspace_of
from plimsoll.quantity import parse_devices, parse_quantity


class Holding(NamedTuple):
    """What one object requests, or may have."""

    gpus: Decimal | None
    """None: unlimited."""
    price: float | None
    """Per hour, in the currency of the prices; None: not known."""
    queue: str = ""
    pool: str = ""
    of_nodes: bool = True
    """Whether it is nodes, which have a price; the price of pods is the price of their nodes."""
    unknown: tuple[str, ...] = ()
    """Instance types whose GPUs are not known, and which `gpus` leaves out."""


class InstanceTypes:
    """The GPUs of instance types, and the price of one instance per hour, by names in any case."""

    def __init__(
        self, prices: Mapping[str, float], gpus: Mapping[str, int] | None = None, pools: Iterable[Manifest] = ()
    ) -> None:
        """`gpus` of one instance override the labels of NodePools that list the type, and these the catalog."""
        self._catalog = Catalog.builtin()
        self._prices = {self._key(name): price for name, price in prices.items()}
        self._gpus: dict[str, int] = {}
        for pool in pools:
            template = section(pool, "spec", "template")
            if counted := _devices(section(template, "metadata", "labels").get(GPU_COUNT)):
                self._gpus |= {self._key(name): counted for name in _listed(section(template, "spec"))}
        self._gpus |= {self._key(name): each for name, each in (gpus or {}).items()}

    def gpus(self, instance_type: str) -> int | None:
        """Of one instance; None if they are not known."""
        listed = self._catalog.lookup(instance_type)
        return self._gpus.get(self._key(instance_type), None if listed is None else listed.gpus)

    def price(self, instance_type: str, nodes: int) -> float | None:
        """Of a type that is not in the catalog, too; None if the price is not known."""
        price = self._prices.get(self._key(instance_type))
        return None if price is None else price * nodes

    def _key(self, name: str) -> str:
        return self._catalog.real_name(name).casefold()


def demand(
    manifest: Manifest,
    types: InstanceTypes,
    resource: str = GPU_RESOURCE,
    runtimes: Runtimes | None = None,
    claims: ClaimedGpus | None = None,
) -> Iterator[Holding]:
    """What a Workspace or a workload requests; nothing for pods that represent capacity, nor for runtimes.

    A TrainJob requests its nodes' GPUs, as it or its runtime says.
    """
    if is_runtime(manifest):
        return
    if is_train_job(manifest):
        training = (runtimes or Runtimes([])).training(manifest, resource)
        if training.nodes * training.gpus:
            yield Holding(Decimal(training.nodes * training.gpus), None, training.queue, of_nodes=False)
        return
    queue = text(labels_of(manifest), QUEUE)
    spanned = 1
    workspace = workspace_of(manifest)
    if workspace is not None:
        queue = text(section(manifest, "spec"), "queue") or queue
        inference = section(workspace.spec, "inference")
        spanned = count_of(inference.get("perReplicaNodeCount"), count_of(workspace.resource.get("count"), 1))
        named = workspace.instance_types
        if named:
            # Of several, that with most GPUs: any of them may be used.
            instance_type = max(named, key=lambda name: types.gpus(name) or 0)
            replicas = count_of(inference.get("replicas"), count_of(section(manifest, "spec").get("replicas"), 1))
            nodes, each = replicas * spanned, types.gpus(instance_type)
            # A template says how many GPUs where the type does not.
            templates = () if each is not None else tuple(pod_templates(manifest))
            unknown = each is None and nodes > 0 and not any(_gpus(one, resource) for one in templates)
            price, named = types.price(instance_type, nodes), (instance_type,) if unknown else ()
            yield Holding(Decimal(nodes * (each or 0)), price, queue, unknown=named)
            if each is not None:
                return
    if is_capacity_pod(manifest):
        return
    for template in pod_templates(manifest):
        claimed = claims.of(manifest, template) if claims is not None else 0
        gpus = (_gpus(template, resource) * template.copies + claimed) * spanned
        if gpus:
            yield Holding(gpus, None, queue or template.queue, of_nodes=False)


def supply(manifest: Manifest, types: InstanceTypes, resource: str = GPU_RESOURCE) -> Iterator[Holding]:
    """The GPUs of a NodeClaim or a static NodePool, or the limit of another NodePool."""
    spec = section(manifest, "spec")
    if is_kind(manifest, "karpenter.sh", "NodeClaim"):
        names = _listed(spec)
        known = _with_gpus(names, types)
        gpus = max(known.values(), default=sum(_of_vendors(section(spec, "resources", "requests"), resource)))
        if gpus:
            yield Holding(Decimal(gpus), _dearest(known or names, 1, types), pool=text(labels_of(manifest), NODEPOOL))
    elif is_kind(manifest, "karpenter.sh", "NodePool"):
        names, name = _listed(section(spec, "template", "spec")), name_of(manifest)
        known = _with_gpus(names, types)
        if spec.get("replicas") is not None:
            nodes = count_of(spec.get("replicas"), 0)
            most = max(known.values(), default=max((each.gpus for each in sizes(manifest)), default=0))
            # Types without GPUs are not in the catalog either.
            guessed = nodes and not most and is_gpu_pool(manifest, resource)
            unknown = tuple(each for each in names if types.gpus(each) is None) if guessed else ()
            yield Holding(Decimal(nodes * most), _dearest(known or names, nodes, types), pool=name, unknown=unknown)
            return
        limits = _of_vendors(section(spec, "limits"), resource)
        if limits:
            limit = sum(limits)
            rates = [None if (price := types.price(each, 1)) is None else price / known[each] for each in known]
            paid = [rate for rate in rates if rate is not None]
            whole = bool(rates) and len(paid) == len(rates)
            yield Holding(Decimal(limit), max(paid) * limit if whole else None, pool=name)
        elif known or is_gpu_pool(manifest, resource):
            yield Holding(None, None, pool=name)


def _of_vendors(amounts: Mapping[str, Any], resource: str) -> list[int]:
    """The numbers of GPUs of each vendor, where one is set."""
    found = (_devices(amounts.get(each)) for each in dict.fromkeys((resource, *VENDOR_RESOURCES)))
    return [each for each in found if each is not None]


def _listed(spec: Mapping[str, Any]) -> list[str]:
    """The instance types that the requirements list."""
    return [
        str(one)
        for _, each in items(spec, "requirements")
        if text(each, "key") == INSTANCE_TYPE and text(each, "operator") == "In" and is_list(each.get("values"))
        for one in each["values"]
    ]


def _with_gpus(names: Iterable[str], types: InstanceTypes) -> dict[str, int]:
    return {name: gpus for name in names if (gpus := types.gpus(name))}


def _dearest(names: Iterable[str], nodes: int, types: InstanceTypes) -> float | None:
    prices = [types.price(each, nodes) for each in names]
    known = [price for price in prices if price is not None]
    return max(known) if known and len(known) == len(prices) else None


def _gpus(template: PodTemplate, resource: str) -> Decimal:
    """Of one pod: whole devices, or its share of GPUs."""
    first = [each for _, each in items(template.spec, "initContainers")]
    sidecars = [each for each in first if each.get("restartPolicy") == "Always"]
    regular = [each for _, each in items(template.spec, "containers")]
    whole = sum(
        max([sum(_limit(each, name) for each in (*regular, *sidecars)), *(_limit(each, name) for each in first)])
        for name in {resource, *VENDOR_RESOURCES}
    )
    if whole:
        return Decimal(whole)
    devices = _devices(template.annotations.get(GPU_FRACTION_DEVICES, 1)) or 1
    try:
        return min(Decimal(1), max(Decimal(0), parse_quantity(template.annotations.get(GPU_FRACTION, 0)))) * devices
    except (ValueError, ArithmeticError):
        return Decimal(0)


def _limit(container: Mapping[str, Any], resource: str) -> int:
    return max(0, _devices(section(container, "resources", "limits").get(resource)) or 0)


def _devices(amount: Any) -> int | None:
    try:
        return None if amount is None else parse_devices(amount)
    except (ValueError, ArithmeticError):
        return None
