"""Reads the cluster, by list and watch, or manifests from files into a Snapshot."""
