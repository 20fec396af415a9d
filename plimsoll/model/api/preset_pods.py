"""PresetPods: what an Environment or a Workspace sets in the pods that serve a preset."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from plimsoll.model.meta import Described, FreeForm, check_pod_template
from plimsoll.quantity import canonical_quantity
from plimsoll.text import did_you_mean, nearest

_SET_BY_US: Final = ("HF_HOME", "HF_HUB_OFFLINE", "HF_TOKEN", "NVIDIA_VISIBLE_DEVICES", "VLLM_HOST_IP")
"""Variables that follow from other fields, or give a container GPUs that its pod did not request."""

_OF_BOTH: Final[Mapping[str, type]] = {
    "appArmorProfile": dict,
    "runAsGroup": int,
    "runAsNonRoot": bool,
    "runAsUser": int,
    "seccompProfile": dict,
    "seLinuxOptions": dict,
}
_OF_PODS: Final[Mapping[str, type]] = {
    **_OF_BOTH,
    "fsGroup": int,
    "fsGroupChangePolicy": str,
    "seLinuxChangePolicy": str,
    "supplementalGroups": list,
    "supplementalGroupsPolicy": str,
    "sysctls": list,
}
_OF_CONTAINERS: Final[Mapping[str, type]] = {
    **_OF_BOTH,
    "allowPrivilegeEscalation": bool,
    "capabilities": dict,
    "procMount": str,
    "readOnlyRootFilesystem": bool,
}
"""Fields of security contexts (Kubernetes 1.35) but those for Windows, and `privileged`."""
_SHAPES: Final = {int: "a whole number", bool: "true or false", str: "text", list: "a list", dict: "an object"}

Name = Annotated[str, Field(min_length=1, max_length=253)]


def _variable(given: dict[str, Any]) -> dict[str, Any]:
    name = given.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError("needs a name")
    if name in _SET_BY_US:
        raise ValueError(f"{name} cannot be set: it follows from weights, presetOptions and the GPUs")
    if given.keys() - {"name", "value", "valueFrom"} or ("value" in given) == ("valueFrom" in given):
        raise ValueError(f"{name} needs exactly one of value and valueFrom")
    if not isinstance(given.get("value", ""), str):
        raise ValueError(f"the value of {name} must be text: put it in quotes")
    return given


def _requests(given: dict[str, Any]) -> dict[str, Any]:
    for resource, amount in given.items():
        if resource.startswith("nvidia.com/"):
            raise ValueError(f"{resource} cannot be set: the pods request the GPUs of their nodes")
        if isinstance(amount, bool) or not isinstance(amount, str | int | float):
            raise ValueError(f"{resource} must be a quantity such as 8 or 64Gi")
    return {resource: canonical_quantity(amount) for resource, amount in given.items()}


def _affinity(given: dict[str, Any]) -> dict[str, Any]:
    check_pod_template({"spec": {"containers": [{"name": "any"}], "affinity": {"nodeAffinity": given}}})
    return given


def _security_context(fields: Mapping[str, type]) -> AfterValidator:
    def check(given: dict[str, Any]) -> dict[str, Any]:
        for field, value in given.items():
            if field == "privileged":
                raise ValueError("privileged cannot be set: it gives a container GPUs that its pod did not request")
            if field not in fields:
                near = did_you_mean(nearest(field, sorted(fields)))
                raise ValueError(f"{field}: unknown field" + (f" ({near})" if near else ""))
            if type(value) is not fields[field]:
                raise ValueError(f"{field} must be {_SHAPES[fields[field]]}")
        return given

    return AfterValidator(check)


class PodResources(Described):
    """Resources of the server's container besides GPUs."""

    requests: Annotated[FreeForm, AfterValidator(_requests)] = Field(default_factory=dict)
    """By resource, such as `cpu`, `memory` and `ephemeral-storage`; absent: 1 CPU and 4 GiB for each GPU."""
    limits: Annotated[FreeForm, AfterValidator(_requests)] = Field(default_factory=dict)


class PresetPods(Described):
    """Settings of the pods that serve a preset. A Workspace's are over those of the Environment; lists and maps are
    joined."""

    image_pull_secrets: tuple[Name, ...] = Field(default=(), max_length=16)
    """Secrets in the Workspace's namespace, by name."""
    service_account_name: Name | None = None
    """ServiceAccount in the Workspace's namespace."""
    env: tuple[Annotated[FreeForm, AfterValidator(_variable)], ...] = Field(default=(), max_length=64)
    """Environment variables of the server, as in a container's `env`: `name` with `value` or `valueFrom`."""
    runtime_class_name: Name | None = None
    """RuntimeClass, such as `nvidia` where that runtime is not the default."""
    priority_class_name: Name | None = None
    tolerations: tuple[FreeForm, ...] = Field(default=(), max_length=64)
    """Tolerations besides those for GPU nodes, as in a pod."""
    node_affinity: Annotated[FreeForm, AfterValidator(_affinity)] | None = None
    """Node affinity besides the Workspace's own requirements, as `affinity.nodeAffinity` of a pod."""
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    resources: PodResources | None = None
    """Resources of the server's container besides GPUs."""
    security_context: Annotated[FreeForm, _security_context(_OF_PODS)] = Field(default_factory=dict)
    """As `securityContext` of a pod; its fields are over those that follow from `inferenceUser` of the Environment."""
    container_security_context: Annotated[FreeForm, _security_context(_OF_CONTAINERS)] = Field(default_factory=dict)
    """As `securityContext` of a container, for each container of the pods; likewise."""
    options: dict[str, str] = Field(default_factory=dict)
    """Options of `vllm serve`, without the leading dashes; an empty string for an option without a value. Those that
    follow from the Workspace and the estimate are refused."""
    startup_seconds: int | None = Field(default=None, ge=60, le=604_800)
    """How long the server may take until it serves; absent: 30 minutes, and 10 seconds for each GiB of the files."""

    def over(self, base: "PresetPods") -> "PresetPods":
        """These settings where they are set, else those of `base`."""
        own = {name: value for name in type(self).model_fields if (value := getattr(self, name)) not in (None, (), {})}
        joined: dict[str, Any] = {
            "image_pull_secrets": tuple(dict.fromkeys((*base.image_pull_secrets, *self.image_pull_secrets))),
            "env": _by_name(base.env, self.env),
            "tolerations": (*base.tolerations, *self.tolerations),
            "labels": {**base.labels, **self.labels},
            "annotations": {**base.annotations, **self.annotations},
            "security_context": {**base.security_context, **self.security_context},
            "container_security_context": {**base.container_security_context, **self.container_security_context},
            "options": {**base.options, **self.options},
        }
        return base.model_copy(update=own | joined)


def _by_name(base: tuple[Mapping[str, Any], ...], own: tuple[Mapping[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    """The variables of both, of those with the same name the own one."""
    return tuple({each["name"]: dict(each) for each in (*base, *own)}.values())
