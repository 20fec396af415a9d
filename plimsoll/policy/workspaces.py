"""Workspaces of Plimsoll and KAITO, and KAITO's InferenceSets: where each has the fields that they share."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from plimsoll.labels import GROUP
from plimsoll.model.meta import section
from plimsoll.policy.fields import Manifest, is_kind, text

KAITO_GROUP: Final = "kaito.sh"


class WorkspaceFields(NamedTuple):
    path: str
    """Path of the object that contains `resource`, `inference` and `tuning`; empty for KAITO's Workspace."""
    spec: Mapping[str, Any]
    selector_path: str
    selector: Mapping[str, Any]

    @property
    def resource(self) -> Mapping[str, Any]:
        return section(self.spec, "resource")

    @property
    def instance_types(self) -> tuple[str, ...]:
        """`instanceType`, or those of `instanceTypes` that are texts."""
        listed, one = self.resource.get("instanceTypes"), text(self.resource, "instanceType")
        several = listed if isinstance(listed, list) else []
        return tuple(each for each in (one, *several) if each and isinstance(each, str))

    @property
    def selector_empty(self) -> bool:
        return not self.selector.get("matchLabels") and not self.selector.get("matchExpressions")


def workspace_of(manifest: Manifest) -> WorkspaceFields | None:
    """None if the object is neither a Workspace nor an InferenceSet."""
    if is_kind(manifest, GROUP, "Workspace"):
        path, spec = "spec", section(manifest, "spec")
    elif is_kind(manifest, KAITO_GROUP, "Workspace"):
        path, spec = "", manifest
    elif is_kind(manifest, KAITO_GROUP, "InferenceSet"):
        spec = section(manifest, "spec", "template")
        return WorkspaceFields("spec.template", spec, "spec.labelSelector", section(manifest, "spec", "labelSelector"))
    else:
        return None
    at = f"{path}.resource.labelSelector".lstrip(".")
    return WorkspaceFields(path, spec, at, section(spec, "resource", "labelSelector"))


def template_labels(manifest: Manifest) -> dict[str, str]:
    """Labels that a Workspace of Plimsoll gives to its pods by its template; those that are no texts are empty."""
    labels = section(manifest, "spec", "inference", "template", "metadata", "labels")
    return {key: text(labels, key) for key in labels}
