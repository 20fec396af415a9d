"""The built-in Kubernetes provider: the engine attaches to it where the plugin cannot be had.

It serves the tokens of pulumi-kubernetes 4.34 and keeps its state shape, so a stack can go back and forth.
"""

from plimsoll.provider.server import Served, serve

__all__ = ["Served", "serve"]
