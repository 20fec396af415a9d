"""Files beside manifests that are no objects of a cluster: those of kustomize, and values and Chart.yaml of charts."""

import re
from pathlib import PurePath
from typing import Final

from plimsoll.observe.files.documents import Document

CHART: Final = "Chart.yaml"
VALUES: Final = "values of a chart"
KUSTOMIZATION: Final = "kustomization file"
PULUMI: Final = "file of Pulumi"
_VALUES_FILE: Final = re.compile(r"(?:.*[-_.])?values.*\.(?:ya?ml|json)", re.IGNORECASE)
_PULUMI_FILE: Final = re.compile(r"Pulumi(?:Policy|\..+)?\.ya?ml")
_KUSTOMIZATION_FILES: Final = ("kustomization.yaml", "kustomization.yml")


def tool_file(document: Document) -> str:
    """Which of these the document is; empty if it is none of them."""
    value, name = document.value, PurePath(document.place.file).name
    if str(value.get("apiVersion") or "").startswith("kustomize.config.k8s.io/"):
        return KUSTOMIZATION
    if "kind" in value:
        return ""
    if name == CHART:
        return CHART
    if "apiVersion" in value:
        return ""
    if name in _KUSTOMIZATION_FILES:
        return KUSTOMIZATION
    if _PULUMI_FILE.fullmatch(name):
        return PULUMI
    return VALUES if _VALUES_FILE.fullmatch(name) else ""
