"""Change: one field of an object of the cluster, with the values that may help."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from pydantic import BaseModel

from plimsoll.model import Snapshot
from plimsoll.model.meta import ObservedObject

Model = TypeVar("Model", bound=BaseModel)
Obj = TypeVar("Obj", bound=ObservedObject)


class Touches(StrEnum):
    """Whose object it is, and so who else is touched; from the fewest to the most."""

    WORKLOAD = "the workload"
    QUEUE = "the queue"
    NAMESPACE = "the namespace"
    NODE_POOL = "the NodePool"
    CLUSTER = "the cluster"

    @property
    def width(self) -> int:
        return list(Touches).index(self)


@dataclass(frozen=True)
class Change:
    obj: str
    """Kind and name."""
    field: str
    before: str
    values: Sequence[Any]
    """From the least change to the greatest: if one of them helps, so does every later one."""
    put: Callable[[Snapshot, Any], Snapshot]
    """The snapshot with the value in the field."""
    touches: Touches
    shown: Callable[[Any], str] = str
    only: Callable[[Any], Any] | None = None
    """Of a value that contains all lesser ones, such as a list of types: the part that is new in it."""
    names_others: bool = False
    """Whether it names queues or namespaces of others, of which the pod's tenant is not told."""

    def text(self, value: Any) -> str:
        return f"{self.obj}: {self.field}: {self.before or '(absent)'} -> {self.shown(value) or '(absent)'}"


def at(model: Model, path: str, value: Any) -> Model:
    """A copy with another value in the field with that path, such as `limits.gpus`."""
    name, _, rest = path.partition(".")
    return model.model_copy(update={name: at(getattr(model, name), rest, value) if rest else value})


def with_changed(snapshot: Snapshot, field: str, obj: Obj, change: Callable[[Obj], Obj]) -> Snapshot:
    """The snapshot with the object as it is there, which may have another change already, changed; `field` has the
    objects of its kind."""
    objs = tuple(change(each) if each.key == obj.key else each for each in getattr(snapshot, field))
    return snapshot.model_copy(update={field: objs})
