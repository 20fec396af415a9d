"""Plimsoll's own API (plimsoll.dev/v1alpha1): Environment, Workspace, GPUDemand and their parts."""
