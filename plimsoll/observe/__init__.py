"""The cluster to a Snapshot: list+watch of the few kinds that capacity is planned on; and manifests from files."""
