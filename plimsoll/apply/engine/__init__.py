"""Pulumi's engine as processes: what one is told, and what it says."""
