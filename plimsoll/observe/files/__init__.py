"""Manifests and other files on this machine."""
