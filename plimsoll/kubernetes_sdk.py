"""Pulumi's SDK for Kubernetes, which type checkers do not read.

Its classes have half a million lines of overloads: mypy takes more than 20 GB of memory for a program that reaches
them, and a program of a user reaches all that components import.
"""

from typing import TYPE_CHECKING, Any

if not TYPE_CHECKING:
    import pulumi_kubernetes as k8s
else:
    k8s: Any

__all__ = ["k8s"]
