"""Converts KAITO's manifests to Plimsoll's."""

from plimsoll.kaito.conversion import Conversion, convert
from plimsoll.kaito.losses import Losses

__all__ = [
    "Conversion",
    "Losses",
    "convert",
]
