"""The APIs of autoscalers: Karpenter's NodePool and NodeClaim, CapacityBuffer, ProvisioningRequest."""
