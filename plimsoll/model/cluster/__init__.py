"""What a cluster runs: nodes, pods, workloads, DaemonSets and autoscalers."""
