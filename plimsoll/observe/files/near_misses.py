"""What manifests say where nobody reads it: annotations of a share in the wrong place, or nearly spelled so."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from plimsoll.model.kai import SHARE_ANNOTATIONS
from plimsoll.model.meta import identify, section
from plimsoll.policy import PodTemplate, templates_of
from plimsoll.text import misspelled

_ALIKE: Final = 0.9
"""Of the letters of two names, as difflib counts them."""


def near_misses(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Warnings about a pod, or about an object with pod templates."""
    templates = list(templates_of(manifest))
    for template in templates:
        yield from _of_pods(manifest, template)
    beside = section(manifest, "metadata", "annotations")
    if not templates or any(template.path == "" for template in templates):
        return
    for name in SHARE_ANNOTATIONS:
        if name in beside and not any(name in template.annotations for template in templates):
            where = templates[0].path
            yield f"{identify(manifest)}: metadata.annotations[{name}]: no pod gets it: move it to {where}.metadata"


def _of_pods(manifest: Mapping[str, Any], template: PodTemplate) -> Iterator[str]:
    metadata = f"{template.path}.metadata".lstrip(".")
    for key in template.labels:
        if key in SHARE_ANNOTATIONS and key not in template.annotations:
            yield f"{identify(manifest)}: {metadata}.labels[{key}]: it is read as an annotation: move it there"
    for key in template.annotations:
        meant = _meant(key, template.annotations)
        if meant:
            yield f"{identify(manifest)}: {metadata}.annotations[{key}]: nothing reads it: did you mean {meant}?"


def _meant(key: str, given: Collection[str]) -> str:
    """The annotation that one without a prefix may stand for; empty if none, or if that is there too."""
    if "/" in key or key in SHARE_ANNOTATIONS:
        return ""
    found = misspelled(key, SHARE_ANNOTATIONS, _ALIKE)
    return "" if found in given else found
