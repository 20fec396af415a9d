"""Converts KAITO's manifests to Plimsoll's."""

from plimsoll.kaito.conversion import Conversion, convert

__all__ = [
    "Conversion",
    "convert",
]
