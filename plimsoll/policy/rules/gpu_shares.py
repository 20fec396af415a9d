"""Rules on KAI's GPU sharing annotations: what KAI's admission requires."""

import re
from collections.abc import Iterator
from typing import Any, Final

from plimsoll.cluster.pods import DeviceUse, known_devices, may_be_accelerator
from plimsoll.model.kai import GPU_FRACTION, GPU_FRACTION_DEVICES, GPU_MEMORY_SHARE, MAX_DEVICES
from plimsoll.policy.cel import POD_VARIABLES, matches, requests_any, texts
from plimsoll.policy.context import PolicyContext
from plimsoll.policy.fields import Manifest, join
from plimsoll.policy.pod_templates import NVIDIA, PodTemplate, pod_templates
from plimsoll.policy.rule import Cel, Family, Fault, Rule, Subject

_NUMBER: Final = r"\+?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?"
_MEMORY: Final = r"0{0,3}[1-9][0-9]{0,11}"
"""MiB; more digits than the memory of any GPU has."""
_DEVICES: Final = r"0{0,3}[1-9][0-9]{0,3}"
_READS: Final = ("Pod", "objects with a pod template")


def _annotation(template: PodTemplate, name: str) -> str:
    return join(template.path, "metadata", "annotations", name)


def _annotated(manifest: Manifest, name: str) -> Iterator[tuple[PodTemplate, str, Any]]:
    """The pod templates that have the annotation, with its field and value."""
    for template in pod_templates(manifest):
        if name in template.annotations:
            yield template, _annotation(template, name), template.annotations[name]


def _number(field: str, name: str, value: Any) -> Fault:
    return Fault(field, f"{name} is the number {value}, and the value of an annotation is a string: put it in quotes")


def _fractions(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    for _template, field, value in _annotated(manifest, GPU_FRACTION):
        fits = re.fullmatch(_NUMBER, str(value)) is not None and 0 < float(value) < 1
        if not fits:
            yield Fault(
                field,
                f"{GPU_FRACTION} is {value!r:.60}, and a fraction must be above 0 and below 1: set one such as "
                f"'0.5', or request whole GPUs with {context.gpu_resource}",
            )
        elif not isinstance(value, str):
            yield _number(field, GPU_FRACTION, value)


def _memories(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    for _template, field, value in _annotated(manifest, GPU_MEMORY_SHARE):
        if not re.fullmatch(_MEMORY, str(value)):
            yield Fault(
                field,
                f"{GPU_MEMORY_SHARE} is {value!r:.60}, and it must be a whole number of MiB above 0, without a "
                "unit: set one such as '2000'",
            )
        elif not isinstance(value, str):
            yield _number(field, GPU_MEMORY_SHARE, value)


def _devices(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    for template, field, value in _annotated(manifest, GPU_FRACTION_DEVICES):
        if not template.wants_share:
            yield Fault(
                field,
                f"{GPU_FRACTION_DEVICES} is {value!r:.60}, and neither {GPU_FRACTION} nor {GPU_MEMORY_SHARE} is "
                f"set: set one of them, or request whole GPUs with {context.gpu_resource}",
            )
        elif not re.fullmatch(_DEVICES, str(value)) or int(value) > MAX_DEVICES:
            yield Fault(
                field,
                f"{GPU_FRACTION_DEVICES} is {value!r:.60}: set a whole number from 1 to {MAX_DEVICES}, the "
                "number of GPUs of one node that the pod uses",
            )
        elif not isinstance(value, str):
            yield _number(field, GPU_FRACTION_DEVICES, value)


def _both(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    for template in pod_templates(manifest):
        given = template.annotations
        if GPU_FRACTION in given and GPU_MEMORY_SHARE in given:
            yield Fault(
                _annotation(template, GPU_MEMORY_SHARE),
                f"{GPU_MEMORY_SHARE} is {given[GPU_MEMORY_SHARE]!r:.60} and {GPU_FRACTION} is "
                f"{given[GPU_FRACTION]!r:.60}: remove one of them",
            )


def _whole(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    for template in pod_templates(manifest):
        if not template.wants_share:
            continue
        annotation = GPU_FRACTION if GPU_FRACTION in template.annotations else GPU_MEMORY_SHARE
        first = next((each for each in template.resources() if may_be_accelerator(each[1])), None)
        if first is not None:
            field, resource, amount = first
            yield Fault(
                field,
                f"{resource} is {amount!r:.60} and {annotation} is {template.annotations[annotation]!r:.60}: a pod "
                "requests a share or whole devices; remove the resource or the annotation",
            )


def _accelerator() -> str:
    """`may_be_accelerator` in CEL, of `name`."""
    known = [each for each in known_devices() if not each.resource.startswith(NVIDIA)]
    exact = sorted(each.resource for each in known if not each.resource.endswith("*"))
    prefixes = [NVIDIA, *sorted(each.resource[:-1] for each in known if each.resource.endswith("*"))]
    others = sorted(each.resource for each in known_devices() if each.use is DeviceUse.NETWORK)
    return (
        f"((name in {texts(exact)} || {texts(prefixes)}.exists(prefix, name.startsWith(prefix)))"
        f" && !(name in {texts(others)}))"
    )


_SHARES: Final = f"('{GPU_FRACTION}' in variables.annotations || '{GPU_MEMORY_SHARE}' in variables.annotations)"
_VALUE: Final = "variables.annotations['{}']"

RULES: Final = (
    Rule(
        "gpu-share-fraction",
        Family.SHARES,
        f"The annotation {GPU_FRACTION} is a number above 0 and below 1.",
        "Set a fraction such as '0.5', or request whole GPUs.",
        _READS,
        _fractions,
        cel=Cel(
            (Subject.PODS,),
            f"!('{GPU_FRACTION}' in variables.annotations) || ({matches(_VALUE.format(GPU_FRACTION), _NUMBER)}"
            f" && double({_VALUE.format(GPU_FRACTION)}) > 0.0 && double({_VALUE.format(GPU_FRACTION)}) < 1.0)",
            POD_VARIABLES,
        ),
    ),
    Rule(
        "gpu-share-memory",
        Family.SHARES,
        f"The annotation {GPU_MEMORY_SHARE} is a whole number of MiB above 0.",
        "Set MiB without a unit, such as '2000'.",
        _READS,
        _memories,
        cel=Cel(
            (Subject.PODS,),
            f"!('{GPU_MEMORY_SHARE}' in variables.annotations) || {matches(_VALUE.format(GPU_MEMORY_SHARE), _MEMORY)}",
            POD_VARIABLES,
        ),
    ),
    Rule(
        "gpu-share-devices",
        Family.SHARES,
        f"The annotation {GPU_FRACTION_DEVICES} is a whole number from 1 to {MAX_DEVICES}, and the pod requests "
        "a share.",
        f"Set {GPU_FRACTION} or {GPU_MEMORY_SHARE}, and the number of GPUs of one node that the pod uses, such as '2'.",
        _READS,
        _devices,
        cel=Cel(
            (Subject.PODS,),
            f"!('{GPU_FRACTION_DEVICES}' in variables.annotations) || ({_SHARES}"
            f" && {matches(_VALUE.format(GPU_FRACTION_DEVICES), _DEVICES)}"
            f" && int({_VALUE.format(GPU_FRACTION_DEVICES)}) <= {MAX_DEVICES})",
            POD_VARIABLES,
        ),
    ),
    Rule(
        "gpu-share-one-amount",
        Family.SHARES,
        f"A pod has {GPU_FRACTION} or {GPU_MEMORY_SHARE}, not both.",
        "Remove one of the annotations.",
        _READS,
        _both,
        cel=Cel(
            (Subject.PODS,),
            f"!('{GPU_FRACTION}' in variables.annotations && '{GPU_MEMORY_SHARE}' in variables.annotations)",
            POD_VARIABLES,
        ),
    ),
    Rule(
        "gpu-share-no-whole-gpu",
        Family.SHARES,
        f"A pod that requests a GPU share requests no other accelerators, such as {NVIDIA}gpu, {NVIDIA}mig-1g.10gb or "
        "amd.com/gpu.",
        "Remove the resource or the annotation.",
        _READS,
        _whole,
        cel=Cel(
            (Subject.PODS,),
            f"!{_SHARES} || !variables.wantsAccelerators",
            {**POD_VARIABLES, "wantsAccelerators": requests_any(_accelerator())},
        ),
    ),
)
