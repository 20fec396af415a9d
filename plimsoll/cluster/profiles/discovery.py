"""Discovery: the devices of a node, from its labels and allocatable resources.

One reading serves nodes that exist and nodes that a NodePool would create: of the latter, the labels are those that a
source says they will have, and nothing is allocatable yet.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from plimsoll.cluster.profiles.claimed import claimed_gpus
from plimsoll.cluster.profiles.finding import DiscrepancyReason, Finding
from plimsoll.cluster.profiles.gpu_labels import (
    GPU_REPLICAS,
    MIG_CONFIG_STATE,
    MIG_STRATEGY,
    MPS,
    READ,
    GpuLabels,
    InvalidGpuLabel,
    parse_gpu_labels,
)
from plimsoll.cluster.profiles.mig import MigLabels, parse_mig_labels, profile_of, slice_mib
from plimsoll.cluster.profiles.vendors import vendor_amounts, vendor_device, vendor_labels
from plimsoll.labels import (
    GPU_MEMORY,
    GPU_PRODUCT,
    GPU_RESOURCE,
    MIG_CONFIG,
    MIG_PREFIX,
    is_part_of_gpu,
)
from plimsoll.model.cluster import NVIDIA, Device, Division, Node
from plimsoll.model.dra import Claimable
from plimsoll.model.kai import MAX_DEVICES
from plimsoll.quantity import parse_devices

MIG_ENABLED: Final = "node-role.kubernetes.io/mig-enabled"
"""Label by which KAI takes a node for one with MIG, or not, whatever is allocatable (its `MIGWorkerNodeLabelKey`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Discovery:
    """The devices of one node; the same object for nodes that say the same."""

    devices: tuple[Device, ...]
    """The device that pods request as GPUs, if there is one, then MIG slices by resource."""
    invalid: InvalidGpuLabel | None
    """The first label on GPUs that is missing or invalid."""
    mig: MigLabels
    labels: GpuLabels
    findings: tuple[Finding, ...] = ()
    mig_enabled: bool = False
    """Whether KAI takes it for a node with MIG, where it places only pods that request slices."""

    @property
    def gpus(self) -> Device | None:
        """The device that pods request by the Environment's resource."""
        return next((device for device in self.devices if not device.resource), None)

    @property
    def claimed(self) -> Device | None:
        """The GPUs that pods get by claims; None where there are none, or where they differ or are parts of GPUs, of
        which no capacity is planned."""
        claimed = [device for device in self.devices if device.claimable is not None]
        return claimed[0] if len(claimed) == 1 and claimed[0].division is Division.WHOLE else None

    @property
    def of_vendor(self) -> Device | None:
        """The devices of another vendor than NVIDIA that pods request as an extended resource; None where there are
        none."""
        return next((each for each in self.devices if each.vendor != NVIDIA and each.claimable is None), None)

    @property
    def shareable(self) -> bool:
        """Whether pods may share its GPUs by KAI's annotations: all are whole."""
        return not (self.mig_enabled or self.mig.changing) and all(device.shareable for device in self.devices)

    @property
    def unlabelled(self) -> bool:
        """Whether GPU Feature Discovery has not reached the node: none of its labels is there."""
        labels = self.labels
        otherwise = any(device.claimable is not None or device.vendor != NVIDIA for device in self.devices)
        return not labels.product and not labels.count and labels.memory_mib is None and not otherwise

    @property
    def partitioned(self) -> bool:
        """Whether GPUs are partitioned by MIG, as far as it says."""
        return self.mig_enabled or self.mig.active

    @property
    def complete(self) -> bool:
        """Whether GPU Feature Discovery has run, and the devices are as configured."""
        return self.invalid is None and not self.mig.changing

    @property
    def division(self) -> str:
        """How its GPUs are divided, for messages; empty where they are whole."""
        if self.mig.changing:
            return f"its MIG configuration {self.mig.config!r} is not applied ({MIG_CONFIG_STATE}={self.mig.state})"
        parts = [device for device in self.devices if not device.shareable]
        if parts:
            return " and ".join(map(str, parts))
        return str(self.mig) if self.mig.active or self.mig_enabled else ""


def discovery_of(node: Node, gpu_resource: str = GPU_RESOURCE) -> Discovery:
    """The devices of a node that exists."""
    return read_discovery(node.labels, node.allocatable, gpu_resource, node.published.kinds)


def read_discovery(
    labels: Mapping[str, str],
    allocatable: Mapping[str, str | int | float],
    gpu_resource: str = GPU_RESOURCE,
    published: tuple[tuple[Claimable, int], ...] = (),
) -> Discovery:
    """The devices that labels and allocatable resources say, or ResourceSlices; of several figures, the smaller one."""
    values = tuple([(key, labels[key]) for key in READ if key in labels])
    if MIG_ENABLED in labels:
        values += ((MIG_ENABLED, labels[MIG_ENABLED]),)
    amounts = tuple([(key, str(amount)) for key, amount in allocatable.items() if is_gpu(key, gpu_resource)])
    if MIG_STRATEGY in labels or MIG_CONFIG in labels or any(key.startswith(MIG_PREFIX) for key, _ in amounts):
        values += tuple(sorted(item for item in labels.items() if item[0].startswith(MIG_PREFIX)))
    of_vendors = vendor_amounts(allocatable)
    if of_vendors and all(name != gpu_resource for name, _ in of_vendors):
        values, amounts = values + vendor_labels(labels), amounts + of_vendors
    return _read(values, amounts, bool(allocatable), gpu_resource, published)


def is_gpu(resource: str, gpu_resource: str) -> bool:
    """Whether an extended resource is of GPUs, or of parts of them."""
    return resource == gpu_resource or is_part_of_gpu(resource)


@lru_cache(maxsize=8192)
def _read(
    values: tuple[tuple[str, str], ...],
    amounts: tuple[tuple[str, str], ...],
    reported: bool,
    gpu_resource: str,
    published: tuple[tuple[Claimable, int], ...],
) -> Discovery:
    """Cached, because most nodes of a cluster say what others say."""
    labels, allocatable = dict(values), dict(_counted(amounts))
    parsed, mig = parse_gpu_labels(labels), parse_mig_labels(labels)
    claimed = tuple(claimed_gpus(published))
    if claimed and not any(allocatable.values()):
        return Discovery(claimed, None, mig, parsed)
    findings = list(_label_findings(parsed, mig))
    slices = [each for each in mig.slices if each.resource]
    unlabelled = list(_unlabelled(allocatable, {device.resource for device in slices}, parsed.product))
    slices += unlabelled
    if MIG_STRATEGY in labels:
        findings += map(_without_label, unlabelled)
    whole = _gpus(parsed, mig, bool(slices), allocatable.get(gpu_resource, 0) if reported else None)
    devices = [*([whole] if whole is not None else []), *sorted(slices, key=lambda device: device.resource)]
    other = vendor_device(labels, allocatable) if not devices else None
    devices += [other] if other is not None else []
    if reported:
        partitioned = bool(slices) or mig.active
        readable = [each for each in devices if (each.resource or gpu_resource) in allocatable or not amounts]
        findings += _amount_findings(readable, allocatable, gpu_resource, partitioned)
    if claimed:
        findings.append(_announced_twice(claimed))
    by_label = labels.get(MIG_ENABLED)
    enabled = by_label == "true" if by_label is not None else bool(slices) or mig.active
    invalid = parsed.invalid if other is None else None
    return Discovery(tuple(devices), invalid, mig, parsed, tuple(findings), enabled)


def _counted(amounts: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, int]]:
    """Devices by resource; amounts that are no whole number of at least 0 are left out."""
    for resource, amount in amounts:
        try:
            count = parse_devices(amount)
        except ValueError:
            continue
        if 0 <= count <= MAX_DEVICES:
            yield resource, count


def _gpus(parsed: GpuLabels, mig: MigLabels, has_slices: bool, allocatable: int | None) -> Device | None:
    """The device that pods request as GPUs; None where the node says nothing of GPUs, or all are partitioned.
    `allocatable` is None where it reports nothing."""
    count = parsed.count
    if not count:
        count = (allocatable or 0) // max(1, parsed.replicas)
    if not count:
        return None
    if mig.single and mig.slices:
        (slices,) = mig.slices
        return slices
    if has_slices and allocatable == 0:
        return None
    device = Device(parsed.product, parsed.memory_mib, count)
    if not parsed.shared:
        return device
    division = Division.MPS if parsed.sharing_strategy == MPS else Division.TIME_SLICING
    return replace(device, division=division, replicas=max(1, parsed.replicas))


def _unlabelled(allocatable: Mapping[str, int], labelled: set[str], product: str) -> Iterator[Device]:
    """Slices that are allocatable and that no label describes."""
    for resource, count in allocatable.items():
        profile = profile_of(resource)
        if profile and count and resource not in labelled:
            yield Device(product, slice_mib(profile), count, Division.MIG, 1, resource, profile)


def _without_label(slices: Device) -> Finding:
    return Finding(
        DiscrepancyReason.UNLABELLED_SLICES,
        f"{slices.count} {slices.resource} are allocatable, and no label describes them",
    )


def _amount_findings(
    devices: Iterable[Device], allocatable: Mapping[str, int], gpu_resource: str, partitioned: bool
) -> Iterator[Finding]:
    """Where labels and allocatable resources differ. Of GPUs beside slices, fewer than labelled are no contradiction:
    the label counts partitioned GPUs too."""
    for device in devices:
        resource = device.resource or gpu_resource
        amount, announced = allocatable.get(resource, 0), device.announced
        if amount > announced:
            yield Finding(
                DiscrepancyReason.MORE_ALLOCATABLE,
                f"{amount} {resource} are allocatable, but labels say {announced}: {announced} are counted",
            )
        elif amount < announced and not (partitioned and not device.profile):
            yield Finding(
                DiscrepancyReason.FEWER_ALLOCATABLE,
                f"labels say {announced} {resource}, but {amount} are allocatable: {amount} are counted",
            )


def _announced_twice(claimed: Iterable[Device]) -> Finding:
    return Finding(
        DiscrepancyReason.ANNOUNCED_TWICE,
        f"a device plugin and ResourceSlices announce its GPUs ({', '.join(map(str, claimed))}): they count once, and "
        "no capacity is planned for claims there: run one of the two on each node",
    )


def _label_findings(parsed: GpuLabels, mig: MigLabels) -> Iterator[Finding]:
    if parsed.invalid is not None and parsed.invalid.value is not None:
        yield Finding(DiscrepancyReason.INVALID_LABEL, str(parsed.invalid))
    if parsed.in_bytes:
        yield Finding(
            DiscrepancyReason.INVALID_LABEL,
            f"label {GPU_MEMORY} is in bytes, as old releases of GPU Feature Discovery wrote it: read as "
            f"{parsed.memory_mib} MiB; update GPU Feature Discovery",
        )
    if parsed.shared and parsed.replicas == 1:
        yield Finding(
            DiscrepancyReason.REPLICAS_CONTRADICT,
            f"label {GPU_PRODUCT} is {parsed.product}, but {GPU_REPLICAS} says that GPUs are not shared",
        )
    if mig.changing:
        yield Finding(
            DiscrepancyReason.MIG_CHANGING,
            f"label {MIG_CONFIG_STATE} is {mig.state!r}: {MIG_CONFIG}={mig.config} is not applied",
        )
