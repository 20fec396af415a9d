"""How many GPUs objects request or may have, and what they cost: what budgets are compared with."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from plimsoll.cluster.catalog import Catalog
from plimsoll.labels import GPU_RESOURCE, INSTANCE_TYPE, NODEPOOL, QUEUE
from plimsoll.model.cluster import InstanceType
from plimsoll.model.kai import GPU_FRACTION, GPU_FRACTION_DEVICES
from plimsoll.policy.fields import Manifest, is_kind, is_list, items, labels_of, name_of, section, text
from plimsoll.policy.pod_templates import PodTemplate, count_of, pod_templates
from plimsoll.policy.rules.capacity_pods import is_capacity_pod
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


class Prices:
    """Instance types, and the price of one instance per hour, by names in any case."""

    def __init__(self, prices: Mapping[str, float]) -> None:
        self.catalog = Catalog.builtin()
        self._prices = {self._key(name): price for name, price in prices.items()}

    def of(self, instance_type: str, nodes: int) -> float | None:
        """Of a type that is not in the catalog, too; None if the price is not known."""
        price = self._prices.get(self._key(instance_type))
        return None if price is None else price * nodes

    def _key(self, name: str) -> str:
        return self.catalog.real_name(name).casefold()


def demand(
    manifest: Manifest, prices: Prices, resource: str = GPU_RESOURCE, runtimes: Runtimes | None = None
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
        if instance_type := text(workspace.resource, "instanceType"):
            replicas = count_of(inference.get("replicas"), count_of(section(manifest, "spec").get("replicas"), 1))
            nodes, kind = replicas * spanned, prices.catalog.lookup(instance_type)
            yield Holding(Decimal(nodes * kind.gpus if kind else 0), prices.of(instance_type, nodes), queue)
            if kind is not None:
                return  # else the template says how many GPUs
    if is_capacity_pod(manifest):
        return
    for template in pod_templates(manifest):
        gpus = _gpus(template, resource) * template.copies * spanned
        if gpus:
            yield Holding(gpus, None, queue or template.queue, of_nodes=False)


def supply(manifest: Manifest, prices: Prices, resource: str = GPU_RESOURCE) -> Iterator[Holding]:
    """The GPUs of a NodeClaim or a static NodePool, or the limit of another NodePool."""
    spec = section(manifest, "spec")
    if is_kind(manifest, "karpenter.sh", "NodeClaim"):
        kinds = _types(spec, prices)
        pool = text(labels_of(manifest), NODEPOOL)
        if kinds:
            yield Holding(Decimal(max(each.gpus for each in kinds)), _dearest(kinds, 1, prices), pool=pool)
    elif is_kind(manifest, "karpenter.sh", "NodePool"):
        kinds, name = _types(section(spec, "template", "spec"), prices), name_of(manifest)
        most = max((each.gpus for each in (kinds or sizes(manifest))), default=0)
        if spec.get("replicas") is not None:
            nodes = count_of(spec.get("replicas"), 0)
            yield Holding(Decimal(nodes * most), _dearest(kinds, nodes, prices), pool=name)
            return
        limit = _devices(section(spec, "limits").get(resource))
        if limit is not None:
            rates = [prices.of(each.name, 1) for each in kinds if each.gpus]
            known = [rate / each.gpus for rate, each in zip(rates, kinds, strict=False) if rate is not None]
            whole = bool(kinds) and len(known) == len(kinds)
            yield Holding(Decimal(limit), max(known) * limit if whole else None, pool=name)
        elif kinds or is_gpu_pool(manifest, resource):
            yield Holding(None, None, pool=name)


def _types(spec: Mapping[str, Any], prices: Prices) -> list[InstanceType]:
    """The GPU instance types that the requirements list."""
    found: list[InstanceType] = []
    for _, each in items(spec, "requirements"):
        values = each.get("values")
        if text(each, "key") == INSTANCE_TYPE and text(each, "operator") == "In" and is_list(values):
            kinds = (prices.catalog.lookup(str(one)) for one in values)
            found += (kind for kind in kinds if kind is not None and kind.gpus)
    return found


def _dearest(kinds: list[InstanceType], nodes: int, prices: Prices) -> float | None:
    costs = [prices.of(each.name, nodes) for each in kinds]
    known = [cost for cost in costs if cost is not None]
    return max(known) if known and len(known) == len(costs) else None


def _gpus(template: PodTemplate, resource: str) -> Decimal:
    """Of one pod: whole devices, or its share of GPUs."""
    first = [each for _, each in items(template.spec, "initContainers")]
    sidecars = [each for each in first if each.get("restartPolicy") == "Always"]
    regular = [each for _, each in items(template.spec, "containers")]
    together = sum(_limit(each, resource) for each in (*regular, *sidecars))
    whole = max([together, *(_limit(each, resource) for each in first)])
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
