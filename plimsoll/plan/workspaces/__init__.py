"""Workspaces: judged, given nodes, and turned into workloads."""
