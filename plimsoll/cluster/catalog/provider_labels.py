"""Labels that Karpenter's providers write on every node of an instance type, from its name and the catalog.

By the providers' own rules, `computeRequirements` in pkg/providers/instancetype of karpenter-provider-aws,
karpenter-provider-azure (with the names of sizes as github.com/Azure/skewer parses them) and
cloudpilot-ai/karpenter-provider-gcp, as of August 2026.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from plimsoll.model.cluster import AMD_GPU, InstanceType

AWS: Final = "karpenter.k8s.aws"
AZURE: Final = "karpenter.azure.com"
GCP: Final = "karpenter.k8s.gcp"
CLOUDS: Final = {"kaito.sh": "azure", AZURE: "azure", AWS: "aws", GCP: "gcp"}
"""Cloud by the API group of its node classes."""
KWOK: Final = "karpenter.kwok.sh"
"""Node classes of Karpenter's KWOK provider, as in a sandbox: it simulates the types of every cloud."""
WITHOUT_RESERVATIONS: Final = frozenset({AZURE, GCP, KWOK})
"""API groups of the node classes of providers whose offerings are spot and on-demand only: `createOfferings` in
pkg/providers/instancetype of the first two, and the built-in types of KWOK."""

_ARCH: Final = "kubernetes.io/arch"
_OS: Final = "kubernetes.io/os"
_AKS: Final = "kubernetes.azure.com"
_ARM64: Final = {
    AWS: re.compile(r"a1\.|[a-z]+\d+[a-z]*g|[^.]*-gb"),  # Graviton, and Grace beside Blackwell
    AZURE: re.compile(r"Standard_[A-Z]+\d+[a-z]*p|Standard_.*_GB\d"),  # Cobalt, and Grace beside Blackwell
    GCP: re.compile(r"(c4a|t2a|n4a|a4x)-"),  # Axion, Ampere Altra, and Grace beside Blackwell
}
"""Beginnings of the names of types that are not amd64, by the providers' naming."""
AWS_NAME: Final = re.compile(r"(?P<family>(?P<category>[a-z]+)(?:-\d+tb)?(?P<generation>\d+)[^.]*)\.(?P<size>.+)")
_AZURE_NAME: Final = re.compile(
    r"Standard_(?P<family>[A-Z])(?P<subfamily>[A-Z]{0,2})\d+-?\d*(?P<features>[abcdeilmtsprP]*|C+|NP)"
    r"_?(?:(?P<gpu>[A-Z]\d+)_?)?(?:_?MI300X_)?(?:v(?P<version>[1-9]))?(?:_Promo)?"
)
"""Sizes that do not match are launched by no NodePool: the provider cannot read their names. Its skewer, 0.0.24, reads
MI300X as no name of a GPU."""
_AMD_COUNTED: Final = {
    AWS: re.compile(r".*"),
    AZURE: re.compile(r"Standard_N\w+_(MI300X|V710)_v5", re.IGNORECASE),
}
"""Types on which a provider counts `amd.com/gpu`: `pkg/providers/instancetype/types.go` of AWS's,
`pkg/utils/supported-gpus.yaml` of Azure's since 1.12. None counts GPUs of Intel."""
_GB: Final = 1000**3 / 1024**3
"""GiB of a gigabyte."""

Labels = Iterator[tuple[str, str | None]]
"""Keys and values; None where the provider writes no such label on nodes of the type."""


class TypeLabels(NamedTuple):
    """What is known of the labels of an instance type's nodes; any other may have any value."""

    values: Mapping[str, str]
    absent: frozenset[str] = frozenset()
    """Labels that no node of the type has."""


def type_labels(group: str, name: str, listed: InstanceType | None) -> TypeLabels:
    """The labels of the instance type, by the API group of the NodePool's node class; `listed` is its catalog entry.

    None are known of nodes of other providers.
    """
    found = dict(_labels(group, name, listed))
    return TypeLabels(
        {key: value for key, value in found.items() if value is not None},
        frozenset(key for key, value in found.items() if value is None),
    )


def launched_for_gpus(listed: InstanceType, group: str) -> bool:
    """Whether Karpenter launches nodes of the type for pods that ask for GPUs, by the API group of the node class."""
    return listed.karpenter_gpus != 0 or group not in (AWS, AZURE, GCP)


def counted_by_karpenter(group: str, name: str, resource: str) -> bool | None:
    """Whether Karpenter counts GPUs of AMD or Intel on the instance type, so that it launches nodes for what asks for
    them, by the API group of the node class; None where that is not known."""
    if group not in (AWS, AZURE, GCP):
        return None
    counted = _AMD_COUNTED.get(group) if resource == AMD_GPU else None
    return counted is not None and counted.fullmatch(name) is not None


def _labels(group: str, name: str, listed: InstanceType | None) -> Labels:
    if group not in CLOUDS:
        return
    if listed is not None and listed.nvidia:
        yield _OS, "linux"
    if listed is not None and listed.arch:
        yield _ARCH, listed.arch
    elif group in _ARM64:
        yield _ARCH, "arm64" if _ARM64[group].match(name) else "amd64"
    if group == AWS:
        yield from ((f"{AWS}/instance-{key}", value) for key, value in _aws(name, listed))
    elif group == AZURE:
        yield from _azure(name, listed)
    elif group == GCP:
        yield from _gcp(name, listed)


def _aws(name: str, listed: InstanceType | None) -> Labels:
    found = AWS_NAME.fullmatch(name)
    if found is not None:
        yield from found.groupdict().items()
    yield from _host(listed)
    if listed is None:
        return
    if listed.disk_gib is not None:
        yield "local-nvme", str(round(listed.disk_gib / _GB)) if listed.disk_gib else None
    if listed.nvidia and listed.karpenter_gpus is not None:
        yield "gpu-manufacturer", "nvidia"
        yield "gpu-count", str(listed.karpenter_gpus)
    if listed.api_gpu_name:
        yield "gpu-name", listed.api_gpu_name.casefold().replace(" ", "-")
    if listed.api_gpu_memory_mib:
        yield "gpu-memory", str(listed.api_gpu_memory_mib)


def _azure(name: str, listed: InstanceType | None) -> Labels:
    labels: dict[str, str | None] = {"name": name}
    found = _AZURE_NAME.fullmatch(name)
    if found is not None:
        family, version = found["family"], found["version"]
        series = f"{family}{found['subfamily']}{found['features']}" + (f"_v{version}" if version else "")
        labels |= {"family": family, "series": series, "version": version or "1"}
        counted = listed is not None and listed.nvidia and bool(listed.karpenter_gpus)
        labels |= {"gpu-name": found["gpu"]} if found["gpu"] or counted else {}
    labels |= dict(_host(listed))
    if listed is not None and listed.nvidia and listed.karpenter_gpus is not None:
        labels["gpu-count"] = str(listed.karpenter_gpus)
        labels["gpu-manufacturer"] = "nvidia" if listed.karpenter_gpus else None
    for key, value in labels.items():
        yield f"{AZURE}/sku-{key}", value
        if key in ("cpu", "memory"):
            yield f"{_AKS}/sku-{key}", value


def _gcp(name: str, listed: InstanceType | None) -> Labels:
    labels = dict(_host(listed))
    parts = name.split("-")
    if len(parts) > 1:
        family, size = parts[0], parts[-2] if len(parts) > 3 else parts[-1]
        generation = family[-2] if len(family) == 3 else family[-1:]
        labels |= {"family": family, "shape": parts[1], "size": size, "generation": generation}
    # The provider names both labels, and writes neither.
    labels |= {"gpu-manufacturer": None, "gpu-memory": None}
    if listed is not None and listed.api_gpu_name:
        labels |= {"gpu-name": listed.api_gpu_name, "gpu-count": str(listed.karpenter_gpus)}
        yield "cloud.google.com/gke-accelerator", listed.api_gpu_name
    yield from ((f"{GCP}/instance-{key}", value) for key, value in labels.items())


def _host(listed: InstanceType | None) -> Labels:
    if listed is not None and listed.vcpus:
        yield "cpu", str(listed.vcpus)
    if listed is not None and listed.memory_mib:
        yield "memory", str(listed.memory_mib)
