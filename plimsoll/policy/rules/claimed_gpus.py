"""GPUs that pods ask for by claims (Dynamic Resource Allocation)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from plimsoll.model.dra import GPU_DRIVERS
from plimsoll.model.meta import section
from plimsoll.policy.fields import Manifest, is_kind, items, name_of, namespace_of, text
from plimsoll.policy.pod_templates import PodTemplate, count_of, pod_templates

GROUP: Final = "resource.k8s.io"
_Key = tuple[str, str]
"""(namespace, name)"""


class ClaimedGpus:
    """What the claims of some manifests ask for. Devices of a class whose name or selectors name GPUs are GPUs."""

    def __init__(self, manifests: Sequence[Manifest]) -> None:
        self._classes = {name_of(each) for each in manifests if gpu_driver(each)}
        self._templates = {_key(each): self._asked(each, "spec", "spec") for each in manifests if _is_template(each)}
        claims = (each for each in manifests if is_kind(each, GROUP, "ResourceClaim"))
        self._claims = {_key(each): self._asked(each, "spec") for each in claims}
        self._first: dict[_Key, Manifest] = {}
        """The first object whose pods name a ResourceClaim: several pods share its devices."""
        for each in manifests:
            for template in pod_templates(each):
                for name in _named(template, "resourceClaimName"):
                    self._first.setdefault((namespace_of(each), name), each)

    def of(self, manifest: Manifest, template: PodTemplate) -> int:
        """Of all pods of the template. A ResourceClaim counts once, for the first object that names it."""
        namespace = namespace_of(manifest)
        own = (self._templates.get((namespace, name), 0) for name in _named(template, "resourceClaimTemplateName"))
        named = {(namespace, name) for name in _named(template, "resourceClaimName")}
        shared = (self._claims.get(key, 0) for key in named if self._first.get(key) is manifest)
        return sum(own) * template.copies + sum(shared)

    def _asked(self, claim: Manifest, *path: str) -> int:
        return sum(self._of_request(each) for _, each in items(section(claim, *path, "devices"), "requests"))

    def _of_request(self, request: Mapping[str, Any]) -> int:
        """The most that one of its alternatives asks for; 1 for all devices of a node."""
        alternatives = [section(request, "exactly"), *(each for _, each in items(request, "firstAvailable"))]
        gpus = (each for each in alternatives if self._is_of_gpus(each) and each.get("adminAccess") is not True)
        return max((count_of(each.get("count"), 1) for each in gpus), default=0)

    def _is_of_gpus(self, asked: Mapping[str, Any]) -> bool:
        name = text(asked, "deviceClassName")
        return "gpu" in name.casefold() or name in self._classes


def gpu_driver(manifest: Manifest) -> str:
    """The driver of GPUs that a DeviceClass names in a selector; empty if it names none, or is none."""
    if not is_kind(manifest, GROUP, "DeviceClass"):
        return ""
    selectors = (text(section(each, "cel"), "expression") for _, each in items(section(manifest, "spec"), "selectors"))
    expressions = list(selectors)
    return next((each for each in GPU_DRIVERS if any(each in expression for expression in expressions)), "")


def _named(template: PodTemplate, field: str) -> Iterator[str]:
    return (name for _, each in items(template.spec, "resourceClaims") if (name := text(each, field)))


def _is_template(manifest: Manifest) -> bool:
    return is_kind(manifest, GROUP, "ResourceClaimTemplate")


def _key(manifest: Manifest) -> _Key:
    return namespace_of(manifest), name_of(manifest)
