"""PriorityClass (scheduling.k8s.io/v1): the priority of the pods that name it."""

from pydantic import Field

from plimsoll.model.meta import ObservedObject


class PriorityClass(ObservedObject):
    value: int
    global_default: bool = Field(default=False, validation_alias="globalDefault")
    """Whether it is the class of pods that name none."""
