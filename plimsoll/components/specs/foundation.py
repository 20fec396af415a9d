"""FoundationSpec: the settings of a foundation."""

from typing import Annotated, Final

from pydantic import AfterValidator, Field, model_validator

from plimsoll.model.api import TRIGGER_NAMESPACE, TriggerNamespace
from plimsoll.model.meta import Declared

_OF_CLUSTER: Final = ("kube-system", "kube-public", "kube-node-lease", "plimsoll-system")


def _not_of_cluster(namespace: str) -> str:
    if namespace in _OF_CLUSTER:
        raise ValueError("is a namespace of the cluster itself, in which no Workspaces are served: remove it")
    return namespace


def _once(namespaces: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(namespaces)) < len(namespaces):
        raise ValueError("names a namespace twice: remove one")
    return namespaces


_Namespace = Annotated[
    str,
    Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
    AfterValidator(_not_of_cluster),
]
ServedNamespaces = Annotated[tuple[_Namespace, ...], Field(min_length=1), AfterValidator(_once)]


class FoundationSpec(Declared):
    """Namespaces and accounts of the controller."""

    labels: dict[str, str] = Field(default_factory=dict)
    """Labels of the namespace plimsoll-system, such as those of Pod Security."""
    service_account_annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations of the controller's service account, such as those of a cloud identity."""
    trigger_namespace: TriggerNamespace = TRIGGER_NAMESPACE
    """Namespace of capacity requests, `spec.demand.namespace` of the Environment; the foundation creates it. Absent:
    `plimsoll-triggers`."""
    served_namespaces: ServedNamespaces | None = None
    """Existing namespaces in which the controller may create workloads and patch pods, by a RoleBinding in each;
    `access` of the Environment must name no others. Absent: all namespaces, by a ClusterRoleBinding."""

    @model_validator(mode="after")
    def _apart(self) -> "FoundationSpec":
        if self.trigger_namespace in (self.served_namespaces or ()):
            raise ValueError("servedNamespaces names triggerNamespace, in which no Workspaces are served: remove it")
        return self
