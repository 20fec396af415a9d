"""Reads a Snapshot from the cluster, by list and watch, or from manifests in files."""
