"""What objects of every API have in common: metadata, conditions, selectors, taints, durations."""
