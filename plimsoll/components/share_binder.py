"""`plimsoll bind` and its reservation pods, for clusters without KAI: their accounts, RBAC rules, and the binder."""

from functools import partial
from typing import Final

import pulumi

from plimsoll.components.access import NAMESPACE as SYSTEM
from plimsoll.components.access import (
    RESERVATION,
    SHARE_BINDER,
    SHARE_BINDER_FOR_RESERVATIONS,
    SHARE_BINDER_IN_ITS_NAMESPACE,
    Rule,
)
from plimsoll.components.admission import (
    BINDER_POLICY,
    DEVICE_POLICY,
    SHARE_POD_POLICY,
    Mutation,
    binder_policy,
    declare_mutation,
    declare_policy,
    device_policy,
    share_pod_policy,
)
from plimsoll.components.args import ShareBinderArgs
from plimsoll.components.binder import BINDER, declare_binder
from plimsoll.components.declaring import Component, fields_of, known, metadata, name_of, valid
from plimsoll.components.granting import grant
from plimsoll.components.specs import ShareBinderSpec
from plimsoll.kubernetes_sdk import k8s

PROBE: Final = "plimsoll-probe"


class ShareBinder(Component):
    """The namespace of reservations, two accounts, the binder's and the reservations', the policies for pods that share
    GPUs, and the binder.

    Raises InvalidArgumentError if an argument is invalid.
    """

    namespace: pulumi.Output[str]
    """Namespace of the reservations."""
    service_account: pulumi.Output[str]
    """Name of the binder's account in plimsoll-system."""

    def __init__(self, name: str, args: ShareBinderArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ShareBinder", name, args, opts)
        known("ShareBinder", name, args, *ShareBinderArgs.__annotations__)
        spec = valid(ShareBinderSpec, "ShareBinder", name, fields_of(args))
        namespace, account = spec.namespace, spec.service_account
        home = k8s.core.v1.Namespace(
            self.named(namespace), metadata=metadata(namespace), opts=self.child(former_name=namespace)
        )
        holder, own = f"{namespace}/{account}", f"{SYSTEM}/{BINDER}"
        k8s.core.v1.ServiceAccount(
            self.named(holder), metadata=metadata(account, namespace), opts=self.child(home, former_name=holder)
        )
        binder = k8s.core.v1.ServiceAccount(
            self.named(own), metadata=metadata(BINDER, SYSTEM), opts=self.child(former_name=own)
        )
        bound = self._grant(BINDER, None, SHARE_BINDER, (BINDER, SYSTEM))
        self._grant(BINDER, namespace, SHARE_BINDER_FOR_RESERVATIONS, (BINDER, SYSTEM), home)
        self._grant(BINDER, SYSTEM, SHARE_BINDER_IN_ITS_NAMESPACE, (BINDER, SYSTEM))
        self._grant(PROBE, namespace, RESERVATION, (account, namespace), home)
        declare_policy(SHARE_POD_POLICY, share_pod_policy(spec.scheduler_name), self)
        declare_policy(BINDER_POLICY, binder_policy(BINDER, spec.scheduler_name, spec.namespace), self)
        self.mutations: list[Mutation] = []
        if spec.device_variables:
            self.mutations.append(declare_mutation(DEVICE_POLICY, device_policy(spec.scheduler_name), self))
        if spec.image:
            declare_binder(self, spec, binder, bound)
        self.namespace = name_of(home)
        self.service_account = name_of(binder)
        self.register_outputs({"namespace": self.namespace, "serviceAccount": self.service_account})

    def _grant(
        self, name: str, namespace: str | None, rules: list[Rule], account: tuple[str, str], *after: pulumi.Resource
    ) -> pulumi.Resource:
        """The binding."""
        within = name if namespace is None else f"{namespace}/{name}"
        options = partial(self.child, former_name=within)
        return grant(self.named(within), metadata(name, namespace), rules, account, options, after=after)[1]
