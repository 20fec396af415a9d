"""Fields of pods that every apiserver refuses, so that no node is bought for pods that could never exist.

The rules are those of pkg/apis/core/validation of Kubernetes for pod templates, without those that a release or feature
gate changes. What is not checked here, the apiserver checks when the workload is created.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from plimsoll.cluster.nodes import own_tolerations
from plimsoll.estimating import preset_of
from plimsoll.labels import KEY_PREFIX, is_label_key, is_label_value
from plimsoll.model import Reason, Refusal, Serving
from plimsoll.model.api import Environment, Workspace
from plimsoll.model.meta import dig, objects_of, section
from plimsoll.presets import ModelCatalog, ModelPreset
from plimsoll.quantity import parse_quantity
from plimsoll.serving import serve_preset
from plimsoll.text import shortlist

_SUBDOMAIN: Final = re.compile(KEY_PREFIX)
_DNS_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_VARIABLE: Final = re.compile(r"[ -<>-~]+")
"""Printable ASCII without `=`."""
_NATIVE: Final = ("cpu", "memory", "ephemeral-storage")
_OPERATORS: Final = ("Exists", "Equal", "Lt", "Gt")
_MANY: Final = 2**31
_VALUES: Final = {
    "In": (1, _MANY),
    "NotIn": (1, _MANY),
    "Exists": (0, 0),
    "DoesNotExist": (0, 0),
    "Gt": (1, 1),
    "Lt": (1, 1),
}
"""Least and most values of an operator of node affinity."""
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_LISTS: Final = ("volumes", "tolerations", "imagePullSecrets")
_LISTS_OF_CONTAINERS: Final = ("env", "volumeMounts")


def declared_pods(
    workspace: Workspace, serving: Serving | None, models: ModelCatalog, environment: Environment
) -> tuple[str, dict[str, Any]]:
    """The beginning of a message that says what declares the pods, and their template, without what the nodes add."""
    inference = workspace.spec.inference
    if inference is None or (inference.template is None and serving is None):
        return "", {}
    if inference.template is not None:
        return "inference.template.", inference.template
    assert serving is not None
    known, template = preset_of(inference, models), dict[str, Any]()
    serve_preset(template, inference, serving, known if isinstance(known, ModelPreset) else None, environment)
    template["spec"]["tolerations"] = own_tolerations(workspace, environment.spec)
    return "the preset's pods: ", template


def refused_pods(where: str, template: Mapping[str, Any]) -> Refusal | None:
    """A refusal of pods with fields that the apiserver refuses, as `declared_pods` gives them."""
    problems = [f"{where}{problem}" for check in _CHECKS for problem in check(template)]
    if not problems:
        return None
    wrong = shortlist(problems, 4)
    return Refusal(Reason.INVALID_SPEC, f"its pods cannot be created or scheduled: {wrong}: correct them")


def _metadata(template: Mapping[str, Any]) -> Iterator[str]:
    for key, value in section(template, "metadata", "labels").items():
        if not is_label_key(str(key)) or not is_label_value(str(value)):
            yield f"metadata.labels: {key}: {value} is no label"
    for key in section(template, "metadata", "annotations"):
        if not is_label_key(str(key).lower()):
            yield f"metadata.annotations: {key!r} is no key"


def _texts(template: Mapping[str, Any]) -> Iterator[str]:
    """Values that are strings for the apiserver, and that YAML reads as numbers and booleans without quotes."""
    maps = ("metadata.annotations", "spec.nodeSelector")
    texts = [(f"{path}: {key}", value) for path in maps for key, value in section(template, *path.split(".")).items()]
    for path, container in _containers(template):
        texts += [(f"{path}.env: {each.get('name')}", each.get("value")) for each in objects_of(container.get("env"))]
        for field in ("command", "args"):
            given = container.get(field)
            texts += [(f"{path}.{field}", value) for value in (given if isinstance(given, list) else ())]
    for path, value in texts:
        if value is not None and not isinstance(value, str):
            yield f"{path}: {value!r} is no string: put it in quotes"


def _shapes(template: Mapping[str, Any]) -> Iterator[str]:
    spec = section(template, "spec")
    places = [(f"spec.{name}", spec.get(name)) for name in _LISTS]
    places += [
        (f"{path}.{name}", each.get(name)) for path, each in _containers(template) for name in _LISTS_OF_CONTAINERS
    ]
    for path, value in places:
        if value is not None and not (isinstance(value, list) and all(isinstance(each, Mapping) for each in value)):
            yield f"{path} must be a list of objects"


def _names(template: Mapping[str, Any]) -> Iterator[str]:
    spec = section(template, "spec")
    named = [
        (f"spec.{field}", spec.get(field)) for field in ("serviceAccountName", "runtimeClassName", "priorityClassName")
    ]
    named += [("spec.imagePullSecrets", each.get("name")) for each in objects_of(spec.get("imagePullSecrets"))]
    for field, name in named:
        if name and (len(str(name)) > 253 or not _SUBDOMAIN.fullmatch(str(name))):
            yield f"{field} is {name!r}, and no object can have that name"
    if spec.get("restartPolicy") not in (None, "", "Always"):
        yield f"spec.restartPolicy is {spec['restartPolicy']}, and the pods of a workload have Always"
    if spec.get("nodeName"):
        yield "spec.nodeName is set, and the scheduler places the pods on the nodes of the Workspace"


def _names_of_containers(template: Mapping[str, Any]) -> Iterator[str]:
    every = list(_containers(template))
    for path, container in every:
        if not _DNS_LABEL.fullmatch(str(container.get("name") or "")):
            yield f"{path}.name is {container.get('name')!r}: it needs a-z, 0-9 and -, at most 63"
    yield from _twice("two containers are named", (container.get("name") for _, container in every))


def _variables(template: Mapping[str, Any]) -> Iterator[str]:
    for path, container in _containers(template):
        for each in objects_of(container.get("env")):
            name = str(each.get("name") or "")
            source = {kind: given for kind, given in section(each, "valueFrom").items() if given is not None}
            if not _VARIABLE.fullmatch(name):
                yield f"{path}.env: {name!r} is no name of a variable"
            if each.get("valueFrom") is not None and len(source) != 1:
                yield f"{path}.env: {name} needs one source in valueFrom"
            for kind in ("secretKeyRef", "configMapKeyRef"):
                if kind in source and not section(source, kind).get("key"):
                    yield f"{path}.env: {kind} of {name} needs a key"


def _volumes(template: Mapping[str, Any]) -> Iterator[str]:
    volumes = Counter(str(each.get("name")) for each in objects_of(dig(template, "spec.volumes")))
    yield from _twice("two volumes are named", volumes.elements())
    for path, container in _containers(template):
        mounts = objects_of(container.get("volumeMounts"))
        for each in mounts:
            if str(each.get("name")) not in volumes:
                yield f"{path}.volumeMounts: there is no volume {each.get('name')!r}"
        yield from _twice(f"{path}.volumeMounts: two are at", (each.get("mountPath") for each in mounts))


def _tolerations(template: Mapping[str, Any]) -> Iterator[str]:
    for number, each in enumerate(objects_of(dig(template, "spec.tolerations"))):
        for problem in _toleration(each):
            yield f"spec.tolerations[{number}]: {problem}"


def _toleration(given: Mapping[str, Any]) -> Iterator[str]:
    operator, effect, value = given.get("operator") or "Equal", given.get("effect") or "", given.get("value") or ""
    if operator not in _OPERATORS:
        yield f"operator {operator!r} is none of {', '.join(_OPERATORS)}"
    if effect and effect not in _EFFECTS:
        yield f"effect {effect!r} is none of {', '.join(_EFFECTS)}"
    if not given.get("key") and operator != "Exists":
        yield "without a key, operator must be Exists"
    if value and (operator == "Exists" or not is_label_value(str(value))):
        yield f"value {value!r} must be empty with Exists, and a label value otherwise"
    if given.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield "tolerationSeconds is for the effect NoExecute"


def _node_affinity(template: Mapping[str, Any]) -> Iterator[str]:
    required = dig(template, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution")
    for term in objects_of(section(required).get("nodeSelectorTerms")):
        for each in objects_of(term.get("matchExpressions")):
            values = each.get("values") or []
            several = isinstance(values, list) and all(isinstance(value, str) for value in values)
            least, most = _VALUES.get(str(each.get("operator")), (1, 0))
            if not several or not least <= len(values) <= most:
                yield f"spec.affinity.nodeAffinity: {each.get('key')} {each.get('operator')} {values} is no condition"


def _resources(template: Mapping[str, Any]) -> Iterator[str]:
    for path, container in _containers(template):
        requests, limits = (section(container, "resources", part) for part in ("requests", "limits"))
        for name in sorted({str(each) for each in (*requests, *limits)}):
            problem = _amounts(name, requests.get(name), limits.get(name))
            if problem:
                yield f"{path}.resources: {name} {problem}"


def _amounts(name: str, request: Any, limit: Any) -> str:
    """What is wrong with the amounts of a resource; empty if nothing is known to be."""
    if "/" not in name and name not in _NATIVE and not name.startswith("hugepages-"):
        return f"is no resource of containers: use {', '.join(_NATIVE)}, or a name with a domain"
    try:
        amounts = [parse_quantity(each) for each in (request, limit) if each is not None]
    except ValueError as error:
        return str(error)
    if not amounts:  # null, which is 0 for the apiserver
        return ""
    if min(amounts) < 0:
        return "is below 0"
    if name in _NATIVE:
        return "has a request above its limit" if len(amounts) == 2 and amounts[0] > amounts[1] else ""
    if any(each != int(each) for each in amounts):
        return "must be a whole number"
    return "needs a limit equal to the request" if limit is None or amounts[0] != amounts[-1] else ""


_CHECKS: Final[tuple[Callable[[Mapping[str, Any]], Iterator[str]], ...]] = (
    _metadata,
    _texts,
    _shapes,
    _names,
    _names_of_containers,
    _variables,
    _volumes,
    _tolerations,
    _node_affinity,
    _resources,
)


def _containers(template: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each container with its field."""
    for part in ("containers", "initContainers"):
        for number, each in enumerate(objects_of(dig(template, f"spec.{part}"))):
            yield f"spec.{part}[{number}]", each


def _twice(what: str, names: Iterable[Any]) -> Iterator[str]:
    return (f"{what} {name!r}" for name, number in Counter(map(str, names)).items() if number > 1)
