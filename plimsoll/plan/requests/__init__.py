"""Objects that request nodes from an autoscaler: trigger pods, CapacityBuffers, ProvisioningRequests."""
