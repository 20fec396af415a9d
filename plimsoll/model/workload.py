"""A workload that the capacity stack owns: Deployment, StatefulSet and what else stands for a Workspace's pods."""

from pydantic import Field
from pydantic.aliases import AliasPath

from plimsoll.model.base import ObservedObject
from plimsoll.model.labels import SPEC_HASH, WORKSPACE, WORKSPACE_NAMESPACE, WORKSPACE_UID


class Workload(ObservedObject):
    api_version: str = Field(validation_alias="apiVersion")
    kind: str
    replicas: int = Field(default=1, validation_alias=AliasPath("spec", "replicas"))
    ready_replicas: int = Field(default=0, validation_alias=AliasPath("status", "readyReplicas"))

    @property
    def spec_hash(self) -> str:
        return self.annotations.get(SPEC_HASH, "")

    @property
    def owner(self) -> tuple[str, str, str]:
        """(namespace, name, UID) of the Workspace that the labels name, each empty where not said."""
        labels = self.labels
        return (labels.get(WORKSPACE_NAMESPACE, ""), labels.get(WORKSPACE, ""), labels.get(WORKSPACE_UID, ""))
