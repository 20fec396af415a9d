"""Labels that Karpenter's providers write on every node of an instance type, from its name and the catalog.

By the providers' own rules (karpenter-provider-aws: pkg/providers/instancetype; karpenter-provider-azure:
pkg/providers/instancetype). GPU memory is left out, because EC2 rounds it differently.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from plimsoll.model.cluster import InstanceType

AWS: Final = "karpenter.k8s.aws"
AZURE: Final = "karpenter.azure.com"
CLOUDS: Final = {"kaito.sh": "azure", AZURE: "azure", AWS: "aws"}
"""Cloud by the API group of its node classes."""
KWOK: Final = "karpenter.kwok.sh"
"""Node classes of Karpenter's KWOK provider, as in a sandbox: it simulates the types of every cloud."""

_ARCHITECTURE: Final = "kubernetes.io/arch"
_ARM64: Final = {
    AWS: re.compile(r"a1\.|[a-z]+\d+[a-z]*g|[^.]*-gb"),  # Graviton, and Grace beside Blackwell
    AZURE: re.compile(r"Standard_[A-Z]+\d+[a-z]*p|Standard_.*_GB\d"),  # Cobalt, and Grace beside Blackwell
}
"""Beginnings of the names of types that are not amd64, by the providers' naming."""
_AWS_NAME: Final = re.compile(r"(?P<family>(?P<category>[a-z]+)(?:-\d+tb)?(?P<generation>\d+)[^.]*)\.(?P<size>.+)")
_AZURE_NAME: Final = re.compile(r"Standard_(?P<family>[A-Z])[^_]*(?:_(?P<gpu>[A-Z]+\d+[^_]*))?(?:_v(?P<version>\d+))?")


def type_labels(group: str, name: str, listed: InstanceType | None) -> Mapping[str, str]:
    """The labels of the instance type, by the API group of the NodePool's node class; `listed` is its catalog entry.

    Empty for unknown providers.
    """
    if group == AWS:
        labels = {f"{AWS}/instance-{key}": value for key, value in _aws(name, listed)}
    elif group == AZURE:
        labels = {f"{AZURE}/sku-{key}": value for key, value in _azure(name, listed)}
    else:
        return {}
    return {**labels, _ARCHITECTURE: "arm64" if _ARM64[group].match(name) else "amd64"}


def _aws(name: str, listed: InstanceType | None) -> Iterator[tuple[str, str]]:
    found = _AWS_NAME.fullmatch(name)
    if found is not None:
        yield from found.groupdict().items()
    yield from _figures(listed)
    if listed is not None and listed.nvidia:
        yield "gpu-name", "-".join(listed.product.casefold().split()[1:])


def _azure(name: str, listed: InstanceType | None) -> Iterator[tuple[str, str]]:
    yield "name", name
    found = _AZURE_NAME.fullmatch(name)
    if found is not None:
        labels = {"family": found["family"], "gpu-name": found["gpu"], "version": found["version"]}
        yield from ((key, value) for key, value in labels.items() if value)
    yield from _figures(listed)


def _figures(listed: InstanceType | None) -> Iterator[tuple[str, str]]:
    if listed is None:
        return
    if listed.vcpus:
        yield "cpu", str(listed.vcpus)
    if listed.memory_mib:
        yield "memory", str(listed.memory_mib)
    if listed.nvidia:
        yield "gpu-count", str(listed.gpus)
        yield "gpu-manufacturer", "nvidia"
