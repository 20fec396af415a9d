"""Nodes for Workspaces: NodeClaims or a static NodePool."""
