"""The filter above each page: a search text, a namespace, a queue, an instance type."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

from plimsoll.model import Snapshot
from plimsoll.ui.view.nodes import NodeRow


@dataclass(frozen=True, slots=True)
class Filter:
    """Empty fields do not restrict."""

    text: str = ""
    namespace: str = ""
    queue: str = ""
    type: str = ""
    """Instance type."""

    def __bool__(self) -> bool:
        return bool(self.text or self.namespace or self.queue or self.type)

    def matches_text(self, *words: str) -> bool:
        """Whether one of the words contains the search text, without regard to case."""
        text = self.text.casefold()
        return not text or any(text in word.casefold() for word in words)

    def matches(
        self, *, namespaces: Collection[str] = (), queues: Collection[str] = (), types: Collection[str] = ()
    ) -> bool:
        """Whether an object of these namespaces, queues and instance types is shown."""
        return (
            (not self.namespace or self.namespace in namespaces)
            and (not self.queue or self.queue in queues)
            and (not self.type or self.type in types)
        )

    def query(self, **more: str) -> str:
        """The query string of the filter, with more fields."""
        fields = {"q": self.text, "namespace": self.namespace, "queue": self.queue, "type": self.type} | more
        return urlencode({name: value for name, value in fields.items() if value})


@dataclass(frozen=True, slots=True)
class Choices:
    """What the fields of a filter can be, sorted."""

    namespaces: tuple[str, ...]
    queues: tuple[str, ...]
    types: tuple[str, ...]


def choices(snapshot: Snapshot, rows: Iterable[NodeRow]) -> Choices:
    rows = tuple(rows)
    namespaces = {name for row in rows for name in row.namespaces}
    namespaces |= {each.namespace for each in snapshot.workspaces}
    namespaces |= {pod.namespace for pod in snapshot.pods if not pod.node_name}
    types = {row.instance_type for row in rows}
    types |= {name for each in snapshot.workspaces for name in each.spec.resource.named_types}
    types |= {name for claim in snapshot.node_claims for name in claim.instance_types}
    return Choices(
        namespaces=tuple(sorted(namespaces - {""})),
        queues=tuple(sorted({each.name for each in snapshot.queues} | {name for row in rows for name in row.queues})),
        types=tuple(sorted(types - {""})),
    )
