"""Unschedulable pods, grouped by what could serve them."""
