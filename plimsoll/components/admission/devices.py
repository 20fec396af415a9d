"""Share devices: containers of share pods learn which GPU is theirs without saying so in every template.

A MutatingAdmissionPolicy (Kubernetes 1.36), so that no webhook server runs. It adds one variable, which reads the
annotation that the binder writes in the same request as the node.
"""

from typing import Final

from plimsoll.components.admission.mutation import SHARED, MutationPolicy, sample_pod
from plimsoll.labels import VISIBLE_DEVICES
from plimsoll.model.cluster import CONFIG_MAP, NVIDIA_VISIBLE_DEVICES
from plimsoll.policy import text

DEVICE_POLICY: Final = "plimsoll-share-devices"


def device_policy(scheduler_name: str) -> MutationPolicy:
    """For share pods that the binder of this scheduler name binds, but for those that KAI's admission has prepared."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    conditions = {
        "ours": f"has(object.spec.schedulerName) && object.spec.schedulerName == {text(scheduler_name)}",
        "share": SHARED,
        "unprepared": f"!('{CONFIG_MAP}' in object.metadata.annotations)",
    }
    # No ApplyConfiguration: that sets no fields of a source, which is atomic.
    patches = " + ".join(map(_variable_in, ("containers", "initContainers")))
    return MutationPolicy(
        policy={
            # The binder refuses a pod that lacks the variable, and says so.
            "failurePolicy": "Ignore",
            # Again where a webhook puts a container in afterwards.
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
    """Patches of the containers of a field that do not say themselves which GPUs they see.

    The variable comes first, so that those of the container may be made of it.
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
