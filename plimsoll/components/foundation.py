"""Foundation: CRDs, RBAC rules and deletion protection of a cluster."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pulumi

from plimsoll.components.access import (
    AGGREGATED,
    CONTROLLER,
    CONTROLLER_ELSEWHERE,
    CONTROLLER_FOR_DEMAND,
    CONTROLLER_FOR_WORKSPACES,
    CONTROLLER_IN_ITS_NAMESPACE,
    CONTROLLER_NAME,
    NAMESPACE,
    SERVICE_ACCOUNT,
    Rule,
)
from plimsoll.components.admission import (
    CLAIM_EVENT_POLICY,
    CONTROLLER_POLICY,
    FOUNDATION_GUARD,
    OWN_METADATA_POLICY,
    PLACEMENT_POLICY,
    SERVED_POLICY,
    TRIGGER_POLICY,
    WRITER_POLICY,
    AdmissionPolicy,
    Guard,
    admission_policies,
    claim_event_policy,
    controller_policy,
    declare_policy,
    guarded,
    one_writer_policies,
    own_metadata_policy,
    placement_policy,
    rule_policies,
    served_policy,
    trigger_policy,
    writer_policy,
)
from plimsoll.components.args import FoundationArgs
from plimsoll.components.declaring import Component, checked, fields_of, known, metadata, name_of
from plimsoll.components.granting import grant
from plimsoll.components.specs import FoundationSpec, definitions
from plimsoll.kubernetes_sdk import k8s
from plimsoll.labels import GROUP, SCHEMA, SCHEMA_VERSION
from plimsoll.model.api import TRIGGER_NAMESPACE


class Foundation(Component):
    """The CRDs, the controller's service account with its RBAC rules, and deletion protection.

    While an Environment exists, the cluster refuses to delete the guard and the CRDs, so a destroy fails at its first
    step. The policies depend on the CRDs, and the guard depends on the policies: they are deleted in the reverse order,
    and nothing is refused in a cluster without Environments. Raises InvalidArgumentError if an argument is invalid.
    """

    namespace: pulumi.Output[str]
    """Namespace of the controller."""
    service_account: pulumi.Output[str]
    """Name of the controller's service account in that namespace."""
    trigger_namespace: pulumi.Output[str]
    """Namespace of capacity requests."""

    def __init__(self, name: str, args: FoundationArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Foundation", name, args, opts)
        known("Foundation", name, args, "served_namespaces")
        given: Any = checked(FoundationSpec, "Foundation", name, fields_of(args), FoundationSpec.complete_manifest)
        namespace = k8s.core.v1.Namespace(
            self.named(NAMESPACE),
            metadata=metadata(NAMESPACE, labels=given.get("labels")),
            opts=self.child(former_name=NAMESPACE),
        )
        account = k8s.core.v1.ServiceAccount(
            self.named(SERVICE_ACCOUNT),
            metadata=metadata(SERVICE_ACCOUNT, NAMESPACE, annotations=given.get("serviceAccountAnnotations")),
            opts=self.child(namespace, former_name=SERVICE_ACCOUNT),
        )
        served: list[str] | None = given.get("servedNamespaces")
        made = [namespace, account, *self._access(namespace, account, served)]
        triggers = self._trigger_namespace(given["triggerNamespace"])
        made += [triggers, *self._demand(triggers, account)]
        kinds = self._kinds()
        # Deleted before the namespace, whose Lease goes with it: an apiserver judges by the last Lease that it has seen
        # once policies with this parameter are deleted and created again, and without one, it refuses nothing.
        policies = self._policies([*kinds, namespace], served)
        self.guard = Guard(
            self.named("plimsoll-foundation"),
            {**FOUNDATION_GUARD, "name": "plimsoll-foundation"},
            self.child(*made, *kinds, *policies, former_name="plimsoll-foundation"),
        )
        self.namespace = name_of(namespace)
        self.service_account = name_of(account)
        self.trigger_namespace = name_of(triggers, given["triggerNamespace"])
        self.register_outputs(
            {
                "namespace": self.namespace,
                "serviceAccount": self.service_account,
                "triggerNamespace": self.trigger_namespace,
            }
        )

    def _kinds(self) -> list[pulumi.Resource]:
        made: list[pulumi.Resource] = []
        for definition in definitions():
            # Environment's definition is created first, and so deleted last: the policies refer to this kind.
            name = definition["metadata"]["name"]
            made.append(
                k8s.apiextensions.v1.CustomResourceDefinition(
                    self.named(name),
                    metadata=metadata(name, labels={**guarded("foundation"), SCHEMA: str(SCHEMA_VERSION)}),
                    spec=definition["spec"],
                    opts=self.child(*made, former_name=name),
                )
            )
        return made

    def _access(
        self, namespace: pulumi.Resource, account: pulumi.Resource, served: Sequence[str] | None
    ) -> list[pulumi.Resource]:
        granted = [
            *self._grant(CONTROLLER_NAME, None, CONTROLLER if served is None else CONTROLLER_ELSEWHERE, account),
            *self._grant(CONTROLLER_NAME, NAMESPACE, CONTROLLER_IN_ITS_NAMESPACE, account, namespace),
        ]
        for each in served or ():
            granted += self._grant(f"{each}/{CONTROLLER_NAME}", each, CONTROLLER_FOR_WORKSPACES, account)
        users = [
            k8s.rbac.v1.ClusterRole(
                self.named(f"plimsoll-{role_name}"),
                metadata=metadata(
                    f"plimsoll-{role_name}",
                    labels={f"rbac.authorization.k8s.io/aggregate-to-{role_name}": "true"},
                ),
                rules=rules,
                opts=self.child(former_name=f"plimsoll-{role_name}"),
            )
            for role_name, rules in AGGREGATED.items()
        ]
        return [*granted, *users]

    def _trigger_namespace(self, name: pulumi.Input[str]) -> Any:
        labels = {f"{GROUP}/component": "demand"}
        resource = name if isinstance(name, str) else TRIGGER_NAMESPACE
        return k8s.core.v1.Namespace(
            self.named(resource), metadata=metadata(name, labels=labels), opts=self.child(former_name=resource)
        )

    def _demand(self, namespace: Any, account: pulumi.Resource) -> list[pulumi.Resource]:
        """The admission policy of the namespace of capacity requests, and the controller's rights in it."""
        name = namespace.metadata["name"]
        return [
            *declare_policy(TRIGGER_POLICY, trigger_policy(name), self),
            *self._grant(f"{CONTROLLER_NAME}-demand", name, CONTROLLER_FOR_DEMAND, account, namespace),
        ]

    def _grant(
        self,
        name: str,
        namespace: pulumi.Input[str] | None,
        rules: list[Rule],
        account: pulumi.Resource,
        *after: pulumi.Resource,
    ) -> list[pulumi.Resource]:
        """A role of the controller, in one namespace or in all, and its binding."""
        return grant(
            self.named(name),
            metadata(CONTROLLER_NAME, namespace),
            rules,
            (SERVICE_ACCOUNT, NAMESPACE),
            partial(self.child, former_name=name),
            after=after,
            account_after=[account],
        )

    def _policies(self, after: list[pulumi.Resource], served: Sequence[str] | None) -> list[pulumi.Resource]:
        return [
            made
            for name, admission in {
                **admission_policies(),
                CONTROLLER_POLICY: controller_policy(),
                **one_writer_policies(),
                **_on_metadata(),
                **rule_policies(),
                WRITER_POLICY: writer_policy(),
                **({} if served is None else {SERVED_POLICY: served_policy(served)}),
            }.items()
            for made in declare_policy(name, admission, self, *after)
        ]


def _on_metadata() -> dict[str, AdmissionPolicy]:
    return {
        OWN_METADATA_POLICY: own_metadata_policy(),
        PLACEMENT_POLICY: placement_policy(),
        CLAIM_EVENT_POLICY: claim_event_policy(),
    }
