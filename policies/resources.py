"""What the rules read out of a Kubernetes resource as Pulumi declares it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeGuard

from plimsoll.model.labels import QUEUE

WORKSPACE: Final = "kubernetes:plimsoll.dev/v1alpha1:Workspace"
ENVIRONMENT: Final = "kubernetes:plimsoll.dev/v1alpha1:Environment"
QUEUE_TYPE: Final = "kubernetes:scheduling.run.ai/v2:Queue"
NODE_CLAIM: Final = "kubernetes:karpenter.sh/v1:NodeClaim"

_GPU: Final = "nvidia.com/"
"""`nvidia.com/gpu`, `nvidia.com/gpu.shared`, `nvidia.com/mig-1g.10gb` ..."""
_SHARE_ANNOTATIONS: Final = ("gpu-fraction", "gpu-memory")
"""KAI's: a share of a GPU stands in no resource request."""


class PodTemplate(NamedTuple):
    """A pod that a resource declares, itself or by a template."""

    labels: Mapping[str, Any]
    annotations: Mapping[str, Any]
    spec: Mapping[str, Any]

    @property
    def wants_gpus(self) -> bool:
        if any(name in self.annotations for name in _SHARE_ANNOTATIONS):
            return True
        containers = (*_items(self.spec, "containers"), *_items(self.spec, "initContainers"))
        return any(_asks_for_gpus(container) for container in containers)

    @property
    def queue(self) -> str:
        return str(self.labels.get(QUEUE) or "")


def section(value: Any, *path: str) -> Mapping[str, Any]:
    """The mapping at that path; an empty one where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def object_name(props: Mapping[str, Any], otherwise: str) -> str:
    """`metadata.name`, else the resource's own name."""
    return str(section(props, "metadata").get("name") or otherwise)


def pod_templates(props: Mapping[str, Any]) -> Iterator[PodTemplate]:
    """Every pod spec in a resource, however deep: a Pod's own, a Deployment's, a JobSet's."""
    spec = section(props, "spec")
    if _is_list(spec.get("containers")):
        metadata = section(props, "metadata")
        yield PodTemplate(section(metadata, "labels"), section(metadata, "annotations"), spec)
        return
    for value in props.values():
        for item in value if _is_list(value) else (value,):
            if isinstance(item, Mapping):
                yield from pod_templates(item)


def _asks_for_gpus(container: Mapping[str, Any]) -> bool:
    amounts = {**section(container, "resources", "requests"), **section(container, "resources", "limits")}
    return any(name.startswith(_GPU) and str(amount) not in ("0", "") for name, amount in amounts.items())


def _items(value: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    items = value.get(name)
    return [item for item in items if isinstance(item, Mapping)] if _is_list(items) else []


def _is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str)
