"""The nodes on which the volumes of pods are, or may be provisioned."""

from plimsoll.cluster.volumes.places import NoVolume, Storage, conditions_of

__all__ = ["NoVolume", "Storage", "conditions_of"]
