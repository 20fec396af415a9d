"""Sets NVIDIA_VISIBLE_DEVICES in the containers of pods that share GPUs, so that their templates need not set it.

A MutatingAdmissionPolicy (Kubernetes 1.36), so that no webhook server runs. The variable reads the annotation that the
share binder writes to the pod in the same request as the node.
"""

from typing import Final

from plimsoll.components.admission.mutation import SHARED, MutationPolicy, sample_pod
from plimsoll.labels import VISIBLE_DEVICES
from plimsoll.model.cluster import CONFIG_MAP, NVIDIA_VISIBLE_DEVICES
from plimsoll.policy import text

DEVICE_POLICY: Final = "plimsoll-share-devices"


def device_policy(scheduler_name: str) -> MutationPolicy:
    """The policy for pods that share GPUs and have this scheduler name, which the share binder binds. Pods that KAI's
    admission has prepared are left out."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    conditions = {
        "ours": f"has(object.spec.schedulerName) && object.spec.schedulerName == {text(scheduler_name)}",
        "share": SHARED,
        "unprepared": f"!('{CONFIG_MAP}' in object.metadata.annotations)",
    }
    # Not an ApplyConfiguration, which cannot set fields of atomic structs such as `fieldRef`.
    patches = " + ".join(map(_variable_in, ("containers", "initContainers")))
    return MutationPolicy(
        policy={
            # If the policy fails, the pod is created without the variable, and the binder refuses it with a reason.
            "failurePolicy": "Ignore",
            # Applied again if a webhook adds a container afterwards.
            "reinvocationPolicy": "IfNeeded",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": name, "expression": each} for name, each in conditions.items()],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patches}}],
        },
        binding={"policyName": DEVICE_POLICY},
        samples=(sample_pod("default", scheduler_name, {}),),
        adds=NVIDIA_VISIBLE_DEVICES,
    )


def _variable_in(field: str) -> str:
    """CEL expression: JSON patches for the containers in `field` that do not set the variable themselves.

    It becomes the first variable, so that the container's own variables can refer to it.
    """
    path = f"metadata.annotations['{VISIBLE_DEVICES}']"
    kind = f"Object.spec.{field}.env"
    source = f'{kind}.valueFrom{{fieldRef: {kind}.valueFrom.fieldRef{{fieldPath: "{path}"}}}}'
    variable = f'{kind}{{name: "{NVIDIA_VISIBLE_DEVICES}", valueFrom: {source}}}'
    all_of = f"(has(object.spec.{field}) ? object.spec.{field} : [])"
    silent = f'!has(each.env) || !each.env.exists(own, own.name == "{NVIDIA_VISIBLE_DEVICES}")'
    env = f'"/spec/{field}/" + string(position) + "/env'
    return " + ".join(
        f'{all_of}.transformList(position, each, {where}, JSONPatch{{op: "add", path: {path}", value: {value}}})'
        for where, path, value in (("!has(each.env)", env, "[]"), (silent, f"{env}/0", variable))
    )
