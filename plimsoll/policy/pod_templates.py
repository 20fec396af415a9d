"""The pods that an object declares, itself or by pod templates at any depth: a Pod, a Deployment, a JobSet."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from plimsoll.labels import QUEUE
from plimsoll.model.kai import GPU_FRACTION, GPU_MEMORY_SHARE
from plimsoll.model.meta import section
from plimsoll.policy.fields import Manifest, is_list, items, join, text
from plimsoll.quantity import parse_quantity

NVIDIA: Final = "nvidia.com/"
"""`nvidia.com/gpu`, `nvidia.com/gpu.shared`, `nvidia.com/mig-1g.10gb` ..."""
SHARE_ANNOTATIONS: Final = (GPU_FRACTION, GPU_MEMORY_SHARE)
DEFAULT_SCHEDULER: Final = "default-scheduler"
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


class PodTemplate(NamedTuple):
    path: str
    """Path of the object that contains metadata and spec; empty for a Pod."""
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    copies: int = 1
    """Pods of the template that run at once: the product of `replicas`, `parallelism` (at most `completions`),
    `numOfHosts` and the group's size of everything that contains it."""

    @property
    def labels(self) -> Mapping[str, Any]:
        return section(self.metadata, "labels")

    @property
    def annotations(self) -> Mapping[str, Any]:
        return section(self.metadata, "annotations")

    @property
    def queue(self) -> str:
        return text(self.labels, QUEUE)

    @property
    def scheduler(self) -> str:
        return text(self.spec, "schedulerName") or DEFAULT_SCHEDULER

    @property
    def wants_share(self) -> bool:
        return any(name in self.annotations for name in SHARE_ANNOTATIONS)

    @property
    def wants_gpus(self) -> bool:
        return self.wants_share or next(self.devices(), None) is not None

    def containers(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Every container with its path, including init and ephemeral containers."""
        for name in _CONTAINERS:
            for number, container in items(self.spec, name):
                yield join(self.path, "spec", name, number), container

    def devices(self) -> Iterator[tuple[str, str, Any]]:
        """Path, resource and amount of each request for NVIDIA devices that is not 0."""
        return (each for each in self.resources() if each[1].startswith(NVIDIA))

    def resources(self) -> Iterator[tuple[str, str, Any]]:
        """Path, resource and amount of each request that is not 0."""
        for path, container in self.containers():
            for part in ("limits", "requests"):
                amounts = section(container, "resources", part)
                for resource in amounts:
                    if not _is_zero(amounts[resource]):
                        yield join(path, "resources", part, resource), resource, amounts[resource]


def pod_templates(manifest: Manifest) -> Iterator[PodTemplate]:
    """Every pod template that the object contains, in the order of its fields."""
    yield from _templates(manifest, "", 1)


def count_of(value: Any, otherwise: int) -> int:
    """A number of objects; `otherwise` where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise


def _templates(value: Mapping[str, Any], path: str, copies: int) -> Iterator[PodTemplate]:
    parallel = count_of(value.get("parallelism"), 1)
    copies *= count_of(value.get("replicas"), 1) * min(parallel, count_of(value.get("completions"), parallel))
    copies *= count_of(value.get("numOfHosts"), 1)
    spec = section(value, "spec")
    if is_list(spec.get("containers")):
        yield PodTemplate(path, section(value, "metadata"), spec, copies)
        return
    for name, item in value.items():
        if isinstance(item, Mapping):
            yield from _templates(item, join(path, name), copies * _in_group(value, name))
        elif is_list(item):
            for number, each in enumerate(item):
                if isinstance(each, Mapping):
                    yield from _templates(each, join(path, name, number), copies)


def _in_group(group: Mapping[str, Any], template: str) -> int:
    """Pods of a template in one group of a LeaderWorkerSet. One pod leads it, by a template of its own if there is
    one; the others are workers."""
    if template != "workerTemplate":
        return 1
    leaders = 1 if section(group, "leaderTemplate") else 0
    return max(0, count_of(group.get("size"), 1) - leaders)


def _is_zero(amount: Any) -> bool:
    try:
        return parse_quantity(amount) == 0
    except (ValueError, ArithmeticError):
        return False
