"""Admission policies in the cluster: deletion protection, the policy rules, triggers, and changes of pods."""

from plimsoll.components.admission.devices import DEVICE_POLICY, device_policy
from plimsoll.components.admission.guard import FOUNDATION_GUARD, Guard, GuardArgs, admission_policies, guarded
from plimsoll.components.admission.mutation import SHARED, Mutation, MutationPolicy, declare_mutation, sample_pod
from plimsoll.components.admission.policy import AdmissionPolicy, declare_policy
from plimsoll.components.admission.rules import ACTIONS, rule_policies
from plimsoll.components.admission.share_pods import SHARE_POD_POLICY, share_pod_policy
from plimsoll.components.admission.triggers import TRIGGER_POLICY, trigger_policy

__all__ = [
    "ACTIONS",
    "DEVICE_POLICY",
    "FOUNDATION_GUARD",
    "SHARED",
    "SHARE_POD_POLICY",
    "TRIGGER_POLICY",
    "AdmissionPolicy",
    "Guard",
    "GuardArgs",
    "Mutation",
    "MutationPolicy",
    "admission_policies",
    "declare_mutation",
    "declare_policy",
    "device_policy",
    "guarded",
    "rule_policies",
    "sample_pod",
    "share_pod_policy",
    "trigger_policy",
]
