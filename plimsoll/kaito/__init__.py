"""KAITO's manifests as Plimsoll's."""

from plimsoll.kaito.conversion import Conversion, convert

__all__ = [
    "Conversion",
    "convert",
]
