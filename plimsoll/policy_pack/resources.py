"""Resources of a Pulumi program as the manifests that the rules read."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pulumi_policy.proxy import UnknownValueError

from plimsoll.policy import UNREAD_GROUPS

_KUBERNETES: Final = "kubernetes:"
_CORE: Final = "core/"


class PartlyKnown(dict[str, Any]):
    """An object of a preview with fields that are known only in the update.

    It has all names. To read the value of such a field raises UnknownValueError; `items()` and `values()` have the
    known ones, for searches at any depth.
    """

    def __init__(self, known: Mapping[str, Any], unknown: Mapping[str, UnknownValueError]) -> None:
        super().__init__(known)
        self._unknown = dict(unknown)

    def __missing__(self, name: str) -> Any:
        raise self._unknown.get(name) or KeyError(name)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._unknown

    def __iter__(self) -> Iterator[str]:
        yield from super().__iter__()
        yield from self._unknown

    def __len__(self) -> int:
        return super().__len__() + len(self._unknown)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 - it would call itself

    def replaced(self, known: Mapping[str, Any]) -> "PartlyKnown":
        """A copy in which these fields are known."""
        return PartlyKnown(
            {**dict(self.items()), **known}, {name: each for name, each in self._unknown.items() if name not in known}
        )


def manifest_of(resource_type: str, props: Mapping[str, Any], name: str) -> PartlyKnown | None:
    """The manifest that a resource declares, with the resource's name where it has none or one that is known only in
    the update; None for other providers, and for objects that no rule reads.

    The type's token is `kubernetes:<group>/<version>:<kind>`, with the group `core` for the core's.
    """
    if not resource_type.startswith(_KUBERNETES):
        return None
    group_version, _, kind = resource_type.removeprefix(_KUBERNETES).rpartition(":")
    if group_version.partition("/")[0] in UNREAD_GROUPS:
        return None
    declared: PartlyKnown = _plain(props)
    metadata = _metadata(declared)
    known = dict(metadata.items())
    named = metadata.replaced({"name": _text(known.get("name")) or _text(known.get("generateName")) or name})
    return declared.replaced({"apiVersion": group_version.removeprefix(_CORE), "kind": kind, "metadata": named})


def _metadata(declared: PartlyKnown) -> PartlyKnown:
    try:
        given = declared.get("metadata")
    except UnknownValueError as error:
        return PartlyKnown({}, dict.fromkeys(("namespace", "labels", "annotations"), error))
    return given if isinstance(given, PartlyKnown) else PartlyKnown({}, {})


def _plain(value: Any) -> Any:
    """Values as in a manifest: the engine passes each whole number as a floating-point one. A list with a value that
    is not known counts as not known."""
    if isinstance(value, Mapping):
        known: dict[str, Any] = {}
        unknown: dict[str, UnknownValueError] = {}
        for name in value:
            try:
                known[name] = _plain(value[name])
            except UnknownValueError as error:
                unknown[name] = error
        return PartlyKnown(known, unknown)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
