"""KAITO's manifests as Plimsoll's."""
