"""Arguments that are one word of several: the words of the models, for type checkers and editors.

Generated: `PLIMSOLL_UPDATE_GOLDEN=1 pytest tests/components/test_choices.py` writes it anew. An Output may be any text,
which is validated when it is known. The schema of the package has strings, which other languages know.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Literal

import pulumi

if TYPE_CHECKING:
    Later = Awaitable[str] | pulumi.Output[str]
    DeclaredTaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | Later
    DemandSettingsClaims = Literal["plan", "observe", "off"] | Later
    DemandSettingsPlacement = Literal["binpack", "spread"] | Later
    DemandSettingsProvisioner = Literal["none", "trigger-pod", "capacity-buffer", "provisioning-request"] | Later
    DemandSettingsWithoutQueue = Literal["refuse", "allow"] | Later
    EnvironmentSpecAdmission = Literal["deny", "audit", "off"] | Later
    EnvironmentSpecByoInstanceType = Literal["refuse", "narrow"] | Later
    EnvironmentSpecNodeAutoProvisioning = Literal["enabled", "disabled"] | Later
    EnvironmentSpecPartialReplicas = Literal["allow", "refuse"] | Later
    EnvironmentSpecProvisioner = Literal["byo", "nodeclaim", "static-nodepool"] | Later
    LabelRequirementOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"] | Later
    NodeClaimsCapacityType = Literal["spot", "on-demand", "reserved", "any"] | Later
    NodeConditionStatus = Literal["True", "False", "Unknown"] | Later
    PartitionMode = Literal["mig", "accelerator"] | Later
    PoliciesAdmission = Literal["deny", "audit", "off"] | Later
    ResourceCapacityType = Literal["spot", "on-demand", "reserved", "any"] | Later
    ResourceCapacityTypes = Literal["spot", "on-demand", "reserved"] | Later
    ResourceDevices = Literal["extended-resource", "claim"] | Later
    RolloutStrategy = Literal["Recreate", "Surge"] | Later
    RuleSettingSeverity = Literal["error", "warning", "off"] | Later
    TuningMethod = Literal["lora", "qlora"] | Later
else:
    DeclaredTaintEffect = pulumi.Input[str]
    DemandSettingsClaims = pulumi.Input[str]
    DemandSettingsPlacement = pulumi.Input[str]
    DemandSettingsProvisioner = pulumi.Input[str]
    DemandSettingsWithoutQueue = pulumi.Input[str]
    EnvironmentSpecAdmission = pulumi.Input[str]
    EnvironmentSpecByoInstanceType = pulumi.Input[str]
    EnvironmentSpecNodeAutoProvisioning = pulumi.Input[str]
    EnvironmentSpecPartialReplicas = pulumi.Input[str]
    EnvironmentSpecProvisioner = pulumi.Input[str]
    LabelRequirementOperator = pulumi.Input[str]
    NodeClaimsCapacityType = pulumi.Input[str]
    NodeConditionStatus = pulumi.Input[str]
    PartitionMode = pulumi.Input[str]
    PoliciesAdmission = pulumi.Input[str]
    ResourceCapacityType = pulumi.Input[str]
    ResourceCapacityTypes = pulumi.Input[str]
    ResourceDevices = pulumi.Input[str]
    RolloutStrategy = pulumi.Input[str]
    RuleSettingSeverity = pulumi.Input[str]
    TuningMethod = pulumi.Input[str]
