"""Objects that need no Environment: NodePools, NodeProfiles, queues, namespaces, classes of devices and templates of
claims, KAITO's Workspaces."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pulumi

from plimsoll.components import DeviceClass, NodePool, NodeProfile, Queue, ResourceClaimTemplate, metadata
from plimsoll.kubernetes_sdk import k8s
from plimsoll.stacks.settings import OF_STACK, KaitoWorkspaceSettings, ObjectSettings, QueueSettings, Settings

_LEFT_TO_OTHERS: Final = [f"metadata.{part}" for part in ("annotations", "labels", "finalizers", "ownerReferences")]
"""Fields of imported objects that are not declared, because other field managers continue to write them.

`managedFields` is not among them: Pulumi's plugin would apply the ignored value, which the apiserver refuses.
"""


class Declared(NamedTuple):
    """The declared components, by the names of the objects."""

    node_pools: Mapping[str, NodePool]
    node_profiles: Mapping[str, NodeProfile]
    queues: Mapping[str, Queue]
    namespaces: Mapping[str, pulumi.CustomResource]
    device_classes: Mapping[str, DeviceClass]
    claim_templates: Mapping[str, ResourceClaimTemplate]
    kaito_workspaces: Mapping[str, pulumi.Resource]

    def all(self) -> list[pulumi.Resource]:
        return [each for group in self for each in group.values()]


def declare(settings: Settings, values: Mapping[str, Any]) -> Declared:
    """Declares the objects, and exports what stacks that refer to this one need."""
    pools = {
        pool.name or key: NodePool(key, arguments(values["nodePools"][key]), options(pool, key))
        for key, pool in settings.node_pools.items()
    }
    profiles = {
        profile.name or key: NodeProfile(
            key, arguments(values["nodeProfiles"][key]), options(profile, key, pools.get(profile.node_pool))
        )
        for key, profile in settings.node_profiles.items()
    }
    queues: dict[str, Queue] = {}
    for key in settings.queues_in_order():
        queue = settings.queues[key]
        parent = queues.get(queue.parent_queue or "")
        queues[queue.name or key] = Queue(key, arguments(values["queues"][key]), options(queue, key, parent))
    namespaces = {each: k8s.core.v1.Namespace(each, metadata=metadata(each)) for each in settings.namespaces}
    classes = {
        each.name or key: DeviceClass(key, arguments(values["deviceClasses"][key]), options(each, key))
        for key, each in settings.device_classes.items()
    }
    templates = {
        key: ResourceClaimTemplate(
            key,
            arguments(values["resourceClaimTemplates"][key]),
            options(
                each,
                key,
                namespaces.get(each.namespace),
                *(classes[name] for name in each.class_names if name in classes),
                namespaced=True,
            ),
        )
        for key, each in settings.resource_claim_templates.items()
    }
    workspaces = {
        key: _kaito(key, workspace, values["kaitoWorkspaces"][key]["fields"], namespaces.get(workspace.namespace))
        for key, workspace in settings.kaito_workspaces.items()
    }
    declared = Declared(pools, profiles, queues, namespaces, classes, templates, workspaces)
    _export(settings, declared)
    return declared


def _export(settings: Settings, declared: Declared) -> None:
    """Exports outputs for StackReferences of other stacks."""
    pulumi.export("namespaces", list(declared.namespaces))
    pulumi.export("nodePools", {name: {"labels": pool.node_labels} for name, pool in declared.node_pools.items()})
    quotas = {queue.name or key: queue for key, queue in settings.queues.items()}
    pulumi.export(
        "queues",
        {
            name: {
                "labels": queue.pod_labels,
                "parentQueue": queue.given("parent_queue"),
                "resources": _amounts(quotas[name]),
            }
            for name, queue in declared.queues.items()
        },
    )


def _amounts(queue: QueueSettings) -> dict[str, Any]:
    return queue.resources.complete_manifest() if queue.write_all_amounts else queue.resources.manifest()


def arguments(values: Mapping[str, Any]) -> Any:
    """The arguments of a component, without the settings that the stack itself uses."""
    return {key: value for key, value in values.items() if key not in OF_STACK}


def options(
    settings: ObjectSettings, key: str, *needs: pulumi.Resource | None, namespaced: bool = False
) -> pulumi.ResourceOptions:
    """Resource options: the dependencies, and the id of an existing object that is imported."""
    name = settings.name or key
    known = f"{getattr(settings, 'namespace', 'default')}/{name}" if namespaced else name
    return pulumi.ResourceOptions(
        depends_on=[each for each in needs if each is not None],
        import_=known if settings.import_ else None,
        ignore_changes=_LEFT_TO_OTHERS if settings.import_ else None,
    )


def _kaito(
    key: str, workspace: KaitoWorkspaceSettings, fields: Mapping[str, Any], namespace: pulumi.Resource | None
) -> pulumi.Resource:
    """A Workspace of KAITO unchanged; its `fields` are next to `metadata`, not in a `spec`."""
    return pulumi.CustomResource(
        f"kubernetes:{workspace.api_version}:Workspace",
        f"kaito-{key}",
        {
            "apiVersion": workspace.api_version,
            "kind": "Workspace",
            "metadata": metadata(
                workspace.name or key, workspace.namespace, skip_await=True, patch_force=workspace.patch_force
            ),
            **fields,
        },
        options(workspace, key, namespace, namespaced=True),
    )
