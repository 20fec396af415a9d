"""Which conditions of pods no node meets: the label, the values that there are, and the nearest."""

from collections.abc import Iterable, Sequence

from plimsoll.cluster.profiles.gpu_labels import DISCOVERED
from plimsoll.cluster.profiles.profile import NodeProfile
from plimsoll.model.meta import NodeRequirement, Placement
from plimsoll.text import did_you_mean, nearest, shortlist


def unmet_conditions(placement: Placement, profiles: Iterable[NodeProfile]) -> tuple[str, str]:
    """What keeps pods of a placement from all of these nodes, with the values that their labels have; and a hint, where
    a value is near to one that is asked for. Empty where each condition can be met."""
    unmet: dict[NodeRequirement, list[NodeProfile]] = {}
    for profile in profiles:
        for condition in profile.unmet(placement):
            unmet.setdefault(condition, []).append(profile)
    texts, hints = [], []
    for condition, candidates in sorted(unmet.items()):
        values = _values(condition.key, candidates)
        texts.append(f"{_written(condition)}, but {_described(condition.key, values, candidates)}")
        wanted = condition.values if condition.operator == "In" else ()
        near = [each for value in wanted for each in nearest(value, list(values))]
        hints += [hint] if (hint := did_you_mean(list(dict.fromkeys(near)))) else []
    return "; ".join(texts), " ".join(hints)


def _written(condition: NodeRequirement) -> str:
    """As people write it: `key=value` for one value."""
    if condition.operator == "In" and len(condition.values) == 1:
        return f"{condition.key}={condition.values[0]}"
    return str(condition)


def _values(key: str, profiles: Sequence[NodeProfile]) -> dict[str, list[str]]:
    """The values that a label of these nodes can have, with the instance types that have them."""
    found: dict[str, list[str]] = {}
    for profile in profiles:
        value = profile.labels.get(key)
        allowed = (each.values for each in profile.requirements.get(key, ()) if each.operator == "In")
        for each in (value,) if value is not None else next(allowed, ()):
            found.setdefault(each, []).append(profile.instance_type)
    return dict(sorted(found.items()))


def _described(key: str, values: dict[str, list[str]], profiles: Sequence[NodeProfile]) -> str:
    if values:
        return "the nodes have " + shortlist(
            f"{value} ({shortlist(sorted(set(types)), 3)})" for value, types in values.items()
        )
    types = shortlist(sorted({profile.instance_type for profile in profiles}), 3)
    if key.startswith(DISCOVERED):
        return f"no value is known for {types}: declare it in a NodeProfile, or wait until such a node has existed"
    return f"nodes of {types} do not have it"
