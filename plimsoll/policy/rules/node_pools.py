"""Rules on Karpenter's NodePools for GPU nodes."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BeforeValidator, Field

from plimsoll.cluster.catalog import Catalog
from plimsoll.labels import GPU_COUNT, GROUP, INSTANCE_TYPE
from plimsoll.model.api import ANY_NODE_POOL
from plimsoll.model.cluster import VENDOR_RESOURCES
from plimsoll.model.meta import (
    CHANGING_KEYS,
    HASHES,
    MOMENTS,
    OWN,
    Declared,
    Finding,
    Severity,
    changes_by_itself,
    identify,
    section,
)
from plimsoll.policy.cel import matches, option, texts, value
from plimsoll.policy.context import PolicyContext
from plimsoll.policy.fields import Manifest, is_kind, is_list, items, join, name_of, text
from plimsoll.policy.rule import Cel, Family, Fault, Rule, Subject
from plimsoll.quantity import parse_devices
from plimsoll.text import did_you_mean, nearest

CONSOLIDATION_RULE: Final = "node-pool-consolidation"
TAINT_RULE: Final = "node-pool-gpu-taint"
_VENDOR_KEY: Final = r"(?:nvidia\.com|(?:beta\.)?amd\.com|gpu\.intel\.com)/.*"
_GPU_KEY: Final = (
    rf"{_VENDOR_KEY}|karpenter\.k8s\.(?:aws|gcp)/instance-gpu-.*|karpenter\.azure\.com/sku-gpu-.*"
    r"|cloud\.google\.com/gke-accelerator"
)
_COUNT_KEYS: Final = (GPU_COUNT, "karpenter.k8s.aws/instance-gpu-count", "karpenter.azure.com/sku-gpu-count")
_FAMILY_KEYS: Final = (
    "karpenter.k8s.aws/instance-family",
    "karpenter.k8s.aws/instance-category",
    "karpenter.azure.com/sku-family",
    "karpenter.k8s.gcp/instance-family",
)
_DURATION: Final = r"(?:[0-9]{1,9}(?:s|m|h))+"
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}
_READS: Final = ("NodePool",)


def _types() -> dict[str, int]:
    return {each.name: each.gpus for each in Catalog.builtin().types if each.nvidia and not each.attached}


def _of_others() -> frozenset[str]:
    """Types with GPUs of AMD or Intel."""
    return frozenset(each.name for each in Catalog.builtin().types if each.resource and not each.attached)


class Size(NamedTuple):
    """A node that a NodePool may launch."""

    what: str
    gpus: int


def _no_text(value: Any) -> Any:
    if isinstance(value, str):
        raise ValueError("must be a number: remove the quotes")
    return value


class ConsolidationOptions(Declared):
    minimum_seconds: Annotated[int, Field(ge=0), BeforeValidator(_no_text)] = 300
    """The minimum of `consolidateAfter`: driver installation and GPU discovery take minutes on a new node."""


class TaintOptions(Declared):
    keys: tuple[str, ...] = ()
    """Keys of the taints that count; empty: any taint with NoSchedule or NoExecute."""


def _requirements(pool: Manifest) -> Iterator[Manifest]:
    for _, each in items(section(pool, "spec", "template", "spec"), "requirements"):
        if text(each, "operator") != "DoesNotExist":
            yield each


def _values(requirement: Manifest) -> list[str]:
    values = requirement.get("values")
    return [str(each) for each in values] if is_list(values) else []


def _gpu_families() -> tuple[str, ...]:
    """AWS's families and categories of types with GPUs, Google Cloud's families, and Azure's."""
    names = {*_types(), *_of_others()}
    aws = {name.partition(".")[0] for name in names if "." in name}
    gcp = {name.partition("-")[0] for name in names if "-" in name and "." not in name}
    return (*sorted(aws | gcp | {each[0] for each in aws}), "N")


def is_gpu_pool(pool: Manifest, gpu_resource: str) -> bool:
    """Whether the NodePool is for nodes with GPUs of NVIDIA, AMD or Intel, by its requirements, limits, labels or
    taints."""
    types, families = {*_types(), *_of_others()}, _gpu_families()
    for each in _requirements(pool):
        key = text(each, "key")
        if re.fullmatch(_GPU_KEY, key):
            return True
        if text(each, "operator") == "In" and any(
            (key == INSTANCE_TYPE and one in types) or (key in _FAMILY_KEYS and one in families)
            for one in _values(each)
        ):
            return True
    template = section(pool, "spec", "template")
    taints = [each for _, each in items(section(template, "spec"), "taints")]
    keys = [*section(template, "metadata", "labels"), *(text(each, "key") for each in taints)]
    return (
        not section(pool, "spec", "limits").keys().isdisjoint((gpu_resource, *VENDOR_RESOURCES))
        or any(re.fullmatch(_VENDOR_KEY, str(key)) for key in keys)
        or any(map(_sku, taints))
    )


def _sku(taint: Manifest) -> bool:
    return text(taint, "key") == "sku" and text(taint, "value") == "gpu"


def sizes(pool: Manifest) -> list[Size]:
    """The GPUs of each node that the NodePool's requirements list by instance type or by count."""
    types = _types()
    found: list[Size] = []
    for each in _requirements(pool):
        if text(each, "operator") != "In":
            continue
        if text(each, "key") == INSTANCE_TYPE:
            found += (Size(one, types[one]) for one in _values(each) if types.get(one))
        elif text(each, "key") in _COUNT_KEYS:
            counts = (one for one in _values(each) if re.fullmatch("[1-9][0-9]{0,3}", one))
            found += (Size(f"{text(each, 'key')} {one}", int(one)) for one in counts)
    return found


def _limit(pool: Manifest, resource: str) -> int | None:
    """The NodePool's limit in whole devices; None if there is none, or one that cannot be parsed."""
    try:
        return parse_devices(section(pool, "spec", "limits")[resource])
    except (KeyError, ValueError, ArithmeticError):
        return None


def _pool(manifest: Manifest) -> bool:
    return is_kind(manifest, "karpenter.sh", "NodePool")


def _lasting(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    if not _pool(manifest):
        return
    metadata = section(manifest, "spec", "template", "metadata")
    for part in ("labels", "annotations"):
        for key, given in section(metadata, part).items():
            if changes_by_itself(key, str(given)):
                yield Fault(
                    join("spec.template.metadata", part, key),
                    f"{key} {str(given)!r:.80} looks like a time or a hash, and each change of it replaces every node "
                    "of the NodePool: move it to the metadata of the NodePool itself, or remove it",
                )


def _consolidation(manifest: Manifest, context: PolicyContext, options: ConsolidationOptions) -> Iterator[Fault]:
    if not _pool(manifest) or section(manifest, "spec").get("replicas") is not None:
        return
    given = text(section(manifest, "spec", "disruption"), "consolidateAfter")
    seconds = _seconds(given or "0s")
    if seconds is None or seconds >= options.minimum_seconds or not is_gpu_pool(manifest, context.gpu_resource):
        return
    shown = f"is {given}" if given else "is not set (default 0s)"
    yield Fault(
        "spec.disruption.consolidateAfter",
        f"consolidateAfter {shown}: Karpenter may delete a new node before its GPUs are discovered and pods run; "
        f"set at least {options.minimum_seconds}s, or Never",
    )


def _seconds(duration: str) -> int | None:
    """None for `Never`, and for values that the cluster rejects."""
    if not re.fullmatch(_DURATION, duration):
        return None
    return sum(int(number) * _SECONDS[unit] for number, unit in re.findall("([0-9]+)([smh])", duration))


def _limits(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    if not _pool(manifest):
        return
    spec = section(manifest, "spec")
    replicas, nodes = spec.get("replicas"), _limit(manifest, "nodes")
    if isinstance(replicas, int) and nodes is not None and nodes < replicas:
        yield Fault(
            "spec.limits.nodes",
            f"limits.nodes is {nodes} and replicas is {replicas}: raise the limit or lower replicas",
        )
    limit = _limit(manifest, context.gpu_resource)
    if not limit:  # 0 disables a NodePool on purpose
        return
    larger = [size for size in sizes(manifest) if size.gpus > limit]
    if larger:
        most = max(size.gpus for size in larger)
        named = ", ".join(f"{size.what} ({size.gpus} GPUs)" for size in larger[:3])
        yield Fault(
            join("spec.limits", context.gpu_resource),
            f"the limit is {limit} {context.gpu_resource}, and Karpenter never launches a node that exceeds it: {named}"
            f"; raise it to at least {most}, or list smaller nodes",
        )


def _remainders(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    limit = _limit(manifest, context.gpu_resource)
    counts = {size.gpus for size in sizes(manifest)}
    if not _pool(manifest) or not limit or len(counts) != 1:
        return
    (gpus,) = counts
    if limit > gpus and limit % gpus:
        yield Fault(
            join("spec.limits", context.gpu_resource),
            f"the limit is {limit} {context.gpu_resource} and each node has {gpus} GPUs, so {limit % gpus} are "
            f"never launched: set {limit - limit % gpus} or {limit - limit % gpus + gpus}",
        )


def _taints(manifest: Manifest, context: PolicyContext, options: TaintOptions) -> Iterator[Fault]:
    if not _pool(manifest) or not is_gpu_pool(manifest, context.gpu_resource):
        return
    taints = [each for _, each in items(section(manifest, "spec", "template", "spec"), "taints")]
    if any(
        text(each, "effect") in ("NoSchedule", "NoExecute") and (not options.keys or text(each, "key") in options.keys)
        for each in taints
    ):
        return
    wanted = " or ".join(options.keys) or "one such as nvidia.com/gpu:NoSchedule"
    yield Fault(
        "spec.template.spec.taints",
        f"the GPU nodes of this NodePool have no taint that repels pods without GPUs: add {wanted}, and the toleration "
        "to the pods that use them",
    )


def _unknown(manifests: Sequence[Manifest], _: PolicyContext, __: Any) -> Iterator[Finding]:
    """NodePools that an Environment's demand names and that are not among the objects, where any are."""
    pools = {name_of(each) for each in manifests if _pool(each)}
    for manifest in manifests:
        if not pools or not is_kind(manifest, GROUP, "Environment"):
            continue
        demand = section(manifest, "spec", "demand")
        named = [(join("spec.demand.placement", key), key) for key in section(demand, "placement")]
        named += [
            (f"spec.demand.sharedDevices[{place}].nodePool", text(each, "nodePool"))
            for place, each in items(demand, "sharedDevices")
        ]
        for field, name in named:
            if name not in (*pools, ANY_NODE_POOL, ""):
                near = did_you_mean(nearest(name, sorted(pools)))
                yield Finding(
                    kind="Environment",
                    namespace="",
                    name=name_of(manifest),
                    field=field,
                    rule="demand-node-pool-unknown",
                    severity=Severity.WARNING,
                    message=f"{identify(manifest)}: there is no NodePool {name!r} among the objects"
                    + (f": {near}" if near else ": name one that is, or remove it"),
                )


_TYPES: Final = "{" + ", ".join(f"'{name}': {gpus}" for name, gpus in sorted(_types().items())) + "}"
_LIMIT: Final = "variables.limits[variables.gpuResource]"
_VARIABLES: Final = {
    "template": value("object", "spec.template.spec", "{}"),
    "requirements": f"{value('variables.template', 'requirements', '[]')}"
    ".filter(each, each.operator != 'DoesNotExist')",
    "taints": value("variables.template", "taints", "[]"),
    "limits": value("object", "spec.limits", "{}"),
    "templateLabels": value("object", "spec.template.metadata.labels", "{}"),
    "templateAnnotations": value("object", "spec.template.metadata.annotations", "{}"),
    "gpuResource": "has(params.spec.gpuResource) ? params.spec.gpuResource : 'nvidia.com/gpu'",
    "types": _TYPES,
    "otherTypes": texts(sorted(_of_others())),
    "named": "variables.requirements.filter(each, each.operator == 'In' && has(each.values))",
    "gpuPool": f"variables.requirements.exists(each, {matches('each.key', _GPU_KEY)})"
    f" || variables.named.exists(each, (each.key == '{INSTANCE_TYPE}'"
    " && each.values.exists(one, one in variables.types || one in variables.otherTypes))"
    f" || (each.key in {texts(_FAMILY_KEYS)} && each.values.exists(one, one in {texts(_gpu_families())})))"
    f" || variables.limits.exists(key, key == variables.gpuResource || key in {texts(VENDOR_RESOURCES)})"
    f" || variables.templateLabels.exists(key, {matches('key', _VENDOR_KEY)})"
    f" || variables.taints.exists(each, {matches('each.key', _VENDOR_KEY)}"
    " || (each.key == 'sku' && has(each.value) && each.value == 'gpu'))",
    "consolidateAfter": value("object", "spec.disruption.consolidateAfter", "'0s'"),
    "limit": f"variables.gpuResource in variables.limits && isQuantity(string({_LIMIT}))"
    f" && quantity(string({_LIMIT})).isInteger() ? quantity(string({_LIMIT})).asInteger() : 0",
    "sizes": f"variables.named.filter(each, each.key == '{INSTANCE_TYPE}')"
    ".map(each, each.values.filter(one, one in variables.types).map(one, variables.types[one]))"
    f" + variables.named.filter(each, each.key in {texts(_COUNT_KEYS)})"
    ".map(each, each.values.filter(one, one.matches('^[1-9][0-9]{0,3}$')).map(one, int(one)))",
}


def _changes(entries: str) -> str:
    moment = matches(f"{entries}[key]", MOMENTS)
    hash_ = (
        f"({matches(f'{entries}[key]', HASHES)} && {entries}[key].matches('[0-9]') && {entries}[key].matches('[a-f]'))"
    )
    return (
        f"{entries}.exists(key, !key.startsWith('{OWN}') && (key == 'nvidia.com/gfd.timestamp'"
        f" || {matches('key', CHANGING_KEYS)} || {moment} || {hash_}))"
    )


RULES: Final = (
    Rule(
        "node-pool-template-lasting",
        Family.NODE_POOLS,
        "Labels and annotations of a NodePool's template contain no times or hashes: a change replaces every node.",
        "Move them to the metadata of the NodePool itself, or remove them.",
        _READS,
        _lasting,
        cel=Cel(
            (Subject.NODE_POOLS,),
            f"!{_changes('variables.templateLabels')} && !{_changes('variables.templateAnnotations')}",
            _VARIABLES,
        ),
    ),
    Rule(
        CONSOLIDATION_RULE,
        Family.NODE_POOLS,
        "Consolidation waits until the GPUs of a new GPU node can be discovered.",
        "Set consolidateAfter to at least 300s, or to the option minimumSeconds.",
        _READS,
        _consolidation,
        options=ConsolidationOptions,
        cel=Cel(
            (Subject.NODE_POOLS,),
            f"has(object.spec.replicas) || !({matches('variables.consolidateAfter', _DURATION)}) || !variables.gpuPool"
            " || duration(variables.consolidateAfter).getSeconds() >= "
            f"int({option(CONSOLIDATION_RULE, 'minimumSeconds', '300')})",
            _VARIABLES,
        ),
    ),
    Rule(
        "node-pool-limits-fit",
        Family.NODE_POOLS,
        "The limits of a NodePool allow each of the nodes that it lists.",
        "Raise the limit to the GPUs of its largest node, or list smaller nodes.",
        _READS,
        _limits,
        cel=Cel(
            (Subject.NODE_POOLS,),
            "(!has(object.spec.replicas) || !('nodes' in variables.limits)"
            " || !quantity(string(variables.limits['nodes'])).isLessThan(quantity(string(object.spec.replicas))))"
            " && (variables.limit == 0 || variables.sizes.all(each, each.all(one, one <= variables.limit)))",
            _VARIABLES,
        ),
    ),
    Rule(
        "node-pool-limit-remainder",
        Family.NODE_POOLS,
        "The GPU limit of a NodePool is a multiple of the GPUs of its nodes.",
        "Set the next lower or higher multiple.",
        _READS,
        _remainders,
        severity=Severity.WARNING,
    ),
    Rule(
        "demand-node-pool-unknown",
        Family.NODE_POOLS,
        "NodePools that spec.demand of the Environment names are among the objects, where any NodePools are.",
        "Name a NodePool that is declared.",
        ("Environment", "NodePool"),
        check_all=_unknown,
        severity=Severity.WARNING,
        loop=False,
    ),
    Rule(
        TAINT_RULE,
        Family.NODE_POOLS,
        "A NodePool for GPU nodes has a taint that repels other pods.",
        "Add a taint such as nvidia.com/gpu:NoSchedule.",
        _READS,
        _taints,
        severity=None,
        options=TaintOptions,
        loop=False,
        cel=Cel(
            (Subject.NODE_POOLS,),
            "!variables.gpuPool || variables.taints.exists(each, each.effect in ['NoSchedule', 'NoExecute']"
            " && (size(variables.taintKeys) == 0 || each.key in variables.taintKeys))",
            {**_VARIABLES, "taintKeys": option(TAINT_RULE, "keys", "[]")},
        ),
    ),
)
