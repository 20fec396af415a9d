"""What the engine found and did, said where people look: status, conditions, Kubernetes events."""

from plimsoll.report.reporter import Reporter

__all__ = ["Reporter"]
