"""Devices that pods get by claims (Dynamic Resource Allocation)."""
