"""`make demo`: the main use case on real components, from installation to removal."""
