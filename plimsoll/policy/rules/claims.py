"""Rules on claims of devices (Dynamic Resource Allocation) and their classes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from plimsoll.model.meta import Finding, Severity, identify, section
from plimsoll.policy.cel import has, text, value
from plimsoll.policy.context import PolicyContext
from plimsoll.policy.fields import Manifest, is_kind, items, join, name_of, namespace_of
from plimsoll.policy.fields import text as text_at
from plimsoll.policy.rule import Cel, Family, Fault, Rule, Subject
from plimsoll.policy.rules.claimed_gpus import GROUP, gpu_driver

ADMIN_ACCESS: Final = "resource.kubernetes.io/admin-access"
"""Label of namespaces whose claims may have `adminAccess` (Kubernetes)."""
_CLAIMS: Final = ("ResourceClaim", "ResourceClaimTemplate")
_OF_ONE: Final = (
    r"(?i)\b(?:(?:parent)?uuid|(?:cuda)?driver(?:src)?version|pcibusid|pciaddr(?:ess)?|minor|(?:card|render)?index)\b"
)
"""Attributes of one device, or of the driver that runs at the moment, of the drivers of NVIDIA, AMD and Intel."""


def _requests(manifest: Manifest) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What a claim asks for, alternatives included, each with its path."""
    if not is_kind(manifest, GROUP, *_CLAIMS):
        return
    path = ("spec", "spec") if manifest.get("kind") == "ResourceClaimTemplate" else ("spec",)
    field = join("", *path, "devices", "requests")
    for number, request in items(section(manifest, *path, "devices"), "requests"):
        if exactly := section(request, "exactly"):
            yield join(field, number, "exactly"), exactly
        for other, each in items(request, "firstAvailable"):
            yield join(field, number, "firstAvailable", other), each


def _expressions(of: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for number, each in items(of, "selectors"):
        yield join(path, "selectors", number, "cel", "expression"), text_at(section(each, "cel"), "expression")


def _of_one_device(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    for path, request in _requests(manifest):
        for field, expression in _expressions(request, path):
            named = re.search(_OF_ONE, expression)
            if named is not None:
                yield Fault(
                    field,
                    f"the selector reads {named[0]!r:.40}, which is not the same on each node of a type, so that no "
                    "node is requested for the claim: select devices by product, memory or architecture",
                )


def _without_gpu(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    if context.queues is None or not is_kind(manifest, GROUP, "DeviceClass"):
        return
    name, driver = name_of(manifest), gpu_driver(manifest)
    if driver and "gpu" not in name.casefold():
        yield Fault(
            "metadata.name",
            f"the class selects devices of {driver}, and KAI counts claims of classes with 'gpu' in their names only, "
            "so that no queue limits these: give it a name with 'gpu'",
        )


def _same_resource(manifests: Sequence[Manifest], context: PolicyContext, _: Any) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for each in manifests:
        resource = text_at(section(each, "spec"), "extendedResourceName")
        if not is_kind(each, GROUP, "DeviceClass") or not resource:
            continue
        other = first.setdefault(resource, name_of(each))
        if other != name_of(each):
            yield _finding(
                each,
                "spec.extendedResourceName",
                "device-class-resource-unique",
                f"{resource} is that of DeviceClass {other!r}, too, and pods get the devices of the newer of both: "
                "give one of them another name",
            )


def _admin(manifests: Sequence[Manifest], context: PolicyContext, _: Any) -> Iterator[Finding]:
    """Of namespaces that are among the manifests: of others, nothing is known."""
    allowed = {
        name_of(each): section(each, "metadata", "labels").get(ADMIN_ACCESS) == "true"
        for each in manifests
        if is_kind(each, "", "Namespace")
    }
    for manifest in manifests:
        for path, request in _requests(manifest):
            if request.get("adminAccess") is True and allowed.get(namespace_of(manifest)) is False:
                yield _finding(
                    manifest,
                    join(path, "adminAccess"),
                    "claim-admin-access",
                    f"namespace {namespace_of(manifest)!r} has no label {ADMIN_ACCESS}=true, without which the "
                    "apiserver refuses adminAccess: remove it, or label the namespace",
                )


def _finding(manifest: Manifest, field: str, rule: str, message: str) -> Finding:
    return Finding(
        kind=str(manifest.get("kind")),
        namespace=namespace_of(manifest),
        name=name_of(manifest),
        field=field,
        rule=rule,
        severity=Severity.ERROR,
        message=f"{identify(manifest)}: {message}",
    )


def _no_selector_of_one(request: str) -> str:
    """CEL expression: no selector of the request names an attribute of one device."""
    return (
        f"(!{has(request, 'selectors')} || {request}.selectors.all(selector, !{has('selector', 'cel')}"
        f" || !selector.cel.expression.matches({text(_OF_ONE)})))"
    )


RULES: Final = (
    Rule(
        "claim-selects-any-node",
        Family.CLAIMS,
        "A claim selects devices by attributes that are the same on each node of a type.",
        "Select devices by product, memory or architecture, not by UUID, place or version of the driver.",
        _CLAIMS,
        _of_one_device,
        severity=Severity.WARNING,
        cel=Cel(
            (Subject.CLAIMS,),
            "variables.requests.all(each, (!has(each.exactly) || "
            + _no_selector_of_one("each.exactly")
            + ") && (!has(each.firstAvailable) || each.firstAvailable.all(other, "
            + _no_selector_of_one("other")
            + ")))",
            {
                "claim": "object.kind == 'ResourceClaimTemplate' ? object.spec.spec : object.spec",
                "requests": value("variables.claim", "devices.requests", "[]"),
            },
        ),
        loop=False,
    ),
    Rule(
        "claim-admin-access",
        Family.CLAIMS,
        f"Claims have adminAccess in namespaces with the label {ADMIN_ACCESS}=true only.",
        "Remove adminAccess, or label the namespace.",
        (*_CLAIMS, "Namespace"),
        check_all=_admin,
        loop=False,
    ),
    Rule(
        "device-class-gpu-name",
        Family.CLAIMS,
        "A DeviceClass of GPUs has `gpu` in its name where queues are declared: KAI counts no other claims.",
        "Give it a name with gpu.",
        ("DeviceClass",),
        _without_gpu,
        severity=Severity.WARNING,
        loop=False,
    ),
    Rule(
        "device-class-resource-unique",
        Family.CLAIMS,
        "No two DeviceClasses have the same extendedResourceName.",
        "Give one of them another name.",
        ("DeviceClass",),
        check_all=_same_resource,
        loop=False,
    ),
)
