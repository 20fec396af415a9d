"""ResourceClaimTemplate: devices that each pod of a workload claims (Dynamic Resource Allocation)."""

import pulumi

from plimsoll.components.args import ResourceClaimTemplateArgs
from plimsoll.components.declaring import Component, ObjectType, name_of, namespace_of, uid_of
from plimsoll.model.dra import ResourceClaimTemplateSpec


class ResourceClaimTemplate(Component):
    """A ResourceClaimTemplate (resource.k8s.io/v1), `resource_claim_template`.

    Raises InvalidArgumentError if an argument is invalid.
    """

    template_name: pulumi.Output[str]
    """Name of the object: `resourceClaimTemplateName` of a pod."""
    namespace: pulumi.Output[str]
    """Namespace of the object."""
    uid: pulumi.Output[str]
    """UID of the object; empty in the preview of its creation."""

    def __init__(self, name: str, args: ResourceClaimTemplateArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ResourceClaimTemplate", name, args, opts)
        self.resource_claim_template = self._object(
            ObjectType("resource.k8s.io/v1", "ResourceClaimTemplate"),
            ResourceClaimTemplateSpec,
            ResourceClaimTemplateSpec.template_manifest,
            namespace=self.given("namespace", "default"),
            labels=self.given("labels"),
            others=("labels",),
            immutable=True,
        )
        self.template_name = name_of(self.resource_claim_template, args.get("name"))
        self.namespace = namespace_of(self.resource_claim_template, args.get("namespace"))
        self.uid = uid_of(self.resource_claim_template)
        self.register_outputs({"templateName": self.template_name, "namespace": self.namespace, "uid": self.uid})
