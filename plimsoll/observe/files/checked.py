"""Reads objects from files for policy checks: manifests of any kind, values of charts, and Chart.yaml."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from plimsoll.cluster.queues import require_object
from plimsoll.errors import InvalidObjectError
from plimsoll.model.meta import section
from plimsoll.observe.files.documents import Document, ManifestError, Place, read_documents
from plimsoll.observe.files.manifests import objects_of
from plimsoll.observe.files.tool_files import CHART, KUSTOMIZATION, PULUMI, tool_file
from plimsoll.policy import CHART_FILE_KIND, VALUES_KIND, is_kind, is_read


class CheckedObjects(NamedTuple):
    places: tuple[Place, ...]
    """Place of each manifest."""
    manifests: tuple[Mapping[str, Any], ...]
    passed_over: Mapping[str, int]
    """Number of objects that no rule reads, by kind; pods that ended, which hold nothing, have their own entry."""


def checked_objects(paths: Sequence[str]) -> CheckedObjects:
    """The objects in files, in folders (recursively) and, for `-`, in standard input.

    Raises ManifestError, which names file, document and line.
    """
    places: list[Place] = []
    manifests: list[Mapping[str, Any]] = []
    passed_over: Counter[str] = Counter()
    for document in read_documents(paths):
        tool = tool_file(document)
        if tool in (KUSTOMIZATION, PULUMI):
            passed_over[tool] += 1
            continue
        for place, manifest in [(document.place, _of_helm(document, tool))] if tool else objects_of(document):
            _require_kind(place, manifest)
            ended = _has_ended(manifest)
            if ended or not is_read(manifest):
                passed_over[f"{manifest['kind']} ({manifest['apiVersion']}){' that ended' if ended else ''}"] += 1
                continue
            try:
                require_object(manifest)
            except InvalidObjectError as error:
                raise ManifestError(f"{place}: {error.message}", error.hint) from None
            places.append(place)
            manifests.append(manifest)
    return CheckedObjects(tuple(places), tuple(manifests), dict(sorted(passed_over.items())))


def _of_helm(document: Document, tool: str) -> dict[str, Any]:
    """A Chart.yaml, or a chart's values, with a kind and name of Plimsoll's."""
    value, path = document.value, PurePath(document.place.file)
    if tool == CHART:
        name = str(value.get("name") or path.parent.name or "chart")
        return {**value, "apiVersion": "v2", "kind": CHART_FILE_KIND, "metadata": {"name": name}}
    return {"apiVersion": "v2", "kind": VALUES_KIND, "metadata": {"name": path.stem}, "values": value}


def _has_ended(manifest: Mapping[str, Any]) -> bool:
    return is_kind(manifest, "", "Pod") and section(manifest, "status").get("phase") in ("Succeeded", "Failed")


def _require_kind(place: Place, manifest: Mapping[str, Any]) -> None:
    for field in ("apiVersion", "kind"):
        given = manifest.get(field)
        if not isinstance(given, str) or not given:
            problem = "missing" if given is None else f"{given!r:.60} is not a string"
            raise ManifestError(
                f"{place}: {field}: {problem}",
                "each document is a Kubernetes object; chart values are read from files named values*.yaml",
            )
