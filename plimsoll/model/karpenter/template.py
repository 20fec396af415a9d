"""PodTemplate (v1): the shape of the pods that a CapacityBuffer or a ProvisioningRequest stands for."""

from plimsoll.model.meta import ObservedObject


class PodTemplate(ObservedObject):
    """One that we made: what it asks for is said in its annotations, as in those of what refers to it."""
