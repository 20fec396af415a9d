"""Admission policies in the cluster: deletion protection, policy rules, one writer, triggers, and changes of pods."""

from plimsoll.components.admission.accounts import (
    BINDER_POLICY,
    CONTROLLER_POLICY,
    binder_policy,
    controller_policy,
)
from plimsoll.components.admission.claim_events import CLAIM_EVENT_POLICY, claim_event_policy
from plimsoll.components.admission.devices import DEVICE_POLICY, device_policy
from plimsoll.components.admission.guard import FOUNDATION_GUARD, Guard, admission_policies, guarded
from plimsoll.components.admission.mutation import SHARED, Mutation, MutationPolicy, declare_mutation, sample_pod
from plimsoll.components.admission.one_writer import one_writer_policies
from plimsoll.components.admission.own_metadata import (
    OWN_METADATA_POLICY,
    PLACEMENT_POLICY,
    UNCHECKED,
    own_metadata_policy,
    placement_policy,
)
from plimsoll.components.admission.policy import AdmissionPolicy, declare_policy
from plimsoll.components.admission.rules import ACTIONS, rule_policies
from plimsoll.components.admission.served_namespaces import SERVED_POLICY, served_policy
from plimsoll.components.admission.share_pods import SHARE_POD_POLICY, share_pod_policy
from plimsoll.components.admission.triggers import TRIGGER_POLICY, trigger_policy
from plimsoll.components.admission.writers import WRITER_POLICY, writer_policy

__all__ = [
    "ACTIONS",
    "BINDER_POLICY",
    "CLAIM_EVENT_POLICY",
    "CONTROLLER_POLICY",
    "DEVICE_POLICY",
    "FOUNDATION_GUARD",
    "OWN_METADATA_POLICY",
    "PLACEMENT_POLICY",
    "SERVED_POLICY",
    "SHARED",
    "SHARE_POD_POLICY",
    "TRIGGER_POLICY",
    "UNCHECKED",
    "WRITER_POLICY",
    "AdmissionPolicy",
    "Guard",
    "Mutation",
    "MutationPolicy",
    "admission_policies",
    "binder_policy",
    "claim_event_policy",
    "controller_policy",
    "declare_mutation",
    "declare_policy",
    "device_policy",
    "guarded",
    "one_writer_policies",
    "own_metadata_policy",
    "placement_policy",
    "rule_policies",
    "sample_pod",
    "served_policy",
    "share_pod_policy",
    "trigger_policy",
    "writer_policy",
]
