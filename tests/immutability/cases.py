"""Changes of a Workspace, each with its expected message. tests/e2e/admission/test_admission.py applies the same
changes to a cluster."""

from typing import Any, NamedTuple

from plimsoll.model.api import (
    COUNT_IMMUTABLE,
    INSTANCE_TYPE_GIVEN,
    INSTANCE_TYPE_IMMUTABLE,
    INSTANCE_TYPE_REQUIRED,
    INSTANCE_TYPES_KEPT,
    LABEL_SELECTOR_IMMUTABLE,
    PARTITION_IMMUTABLE,
    PRESET_IMMUTABLE,
    TEMPLATE_KEPT,
    TUNING_KEPT,
)

Spec = dict[str, Any]


class Change(NamedTuple):
    name: str
    before: Spec
    after: Spec
    existing: tuple[str, ...] = ()
    """Messages with existing nodes."""
    provisioned: tuple[str, ...] = ()
    """Messages where nodes are provisioned."""


def both(name: str, before: Spec, after: Spec, *messages: str) -> Change:
    return Change(name, before, after, messages, messages)


def on(**resource: Any) -> Spec:
    return {"resource": {"labelSelector": {"matchLabels": {"pool": "a"}}, **resource}, **running()}


def running(**inference: Any) -> Spec:
    return {"inference": {"preset": {"name": "phi-4"}, **inference}}


def template(image: str) -> Spec:
    return {"inference": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}


TUNING = {"tuning": {"preset": {"name": "phi-4"}, "input": {"image": "data:1"}, "output": {"image": "out:1"}}}
SLICE, LARGER = {"mode": "mig", "profile": "1g.10gb"}, {"mode": "mig", "profile": "2g.20gb"}
OTHER = {"labelSelector": {"matchLabels": {"pool": "b"}}}
IN = {"labelSelector": {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}}
MORE = {"labelSelector": {"matchLabels": {"pool": "a", "zone": "a"}}}
ZONES = {"key": "zone", "operator": "In", "values": ["a", "b"]}
NO_SPOT = {"key": "spot", "operator": "DoesNotExist"}


def expressing(*expressions: Spec) -> Spec:
    return {**running(), "resource": {"labelSelector": {"matchExpressions": list(expressions)}}}


CHANGES = (
    both("count", on(count=5), on(count=10), COUNT_IMMUTABLE),
    both("count-set", on(), on(count=2)),
    both("count-unset", on(count=2), on()),
    both("count-of-nodes-set", {"resource": {}}, {"resource": {"count": 2}}, COUNT_IMMUTABLE),
    both("count-of-one-node-set", {"resource": {}}, {"resource": {"count": 1}}),
    both("labels", on(), {**running(), "resource": OTHER}, LABEL_SELECTOR_IMMUTABLE),
    both("labels-as-expressions", on(), {**running(), "resource": IN}),
    both("expressions-as-labels", {**running(), "resource": IN}, on()),
    both("expressions-reordered", expressing(ZONES, NO_SPOT), expressing(NO_SPOT, ZONES)),
    both("values-reordered", expressing(ZONES), expressing({**ZONES, "values": ["b", "a"]})),
    both("value-added", expressing(ZONES), expressing({**ZONES, "values": ["a", "b", "c"]}), LABEL_SELECTOR_IMMUTABLE),
    both("value-removed", expressing(ZONES), expressing({**ZONES, "values": ["a"]}), LABEL_SELECTOR_IMMUTABLE),
    both("expression-added", expressing(ZONES), expressing(ZONES, NO_SPOT), LABEL_SELECTOR_IMMUTABLE),
    both("expression-removed", expressing(ZONES, NO_SPOT), expressing(NO_SPOT), LABEL_SELECTOR_IMMUTABLE),
    both("operator", expressing(ZONES), expressing({**ZONES, "operator": "NotIn"}), LABEL_SELECTOR_IMMUTABLE),
    both("label-added", on(), {**running(), "resource": MORE}, LABEL_SELECTOR_IMMUTABLE),
    both("empty-selector", running(), {**running(), "resource": {"labelSelector": {"matchLabels": {}}}}),
    both("labels-removed", on(), running(), LABEL_SELECTOR_IMMUTABLE),
    both("partition", on(partition=SLICE), on(partition=LARGER), PARTITION_IMMUTABLE),
    both("partition-removed", on(partition=SLICE), on(), PARTITION_IMMUTABLE),
    both("preset", running(), running(preset={"name": "other"}), PRESET_IMMUTABLE),
    both("preset-to-template", running(), template("own:1"), PRESET_IMMUTABLE, TEMPLATE_KEPT),
    both("template", template("own:1"), template("own:2")),
    both("replicas", running(replicas=1), running(replicas=3)),
    both("queue", on(), {**on(), "queue": "inference"}),
    both("tuning-added", {}, TUNING, TUNING_KEPT),
    both("type-changed", on(instanceType="a"), on(instanceType="b"), INSTANCE_TYPE_IMMUTABLE),
    both("type-spelled-otherwise", on(instanceType="Standard_A"), on(instanceType="standard_a")),
    both("type-stays", on(instanceType="a"), {**on(instanceType="a"), "queue": "q"}),
    both("no-type-stays", on(), {**on(), "queue": "q"}),
    Change("type-set", on(), on(instanceType="b"), (INSTANCE_TYPE_GIVEN.format(given="b"),)),
    Change("empty-type-set", on(instanceType=""), on(instanceType="b"), (INSTANCE_TYPE_GIVEN.format(given="b"),)),
    Change("type-cleared", on(instanceType="a"), on(), (), (INSTANCE_TYPE_REQUIRED,)),
    both("types-changed", on(instanceTypes=["a"]), on(instanceTypes=["b"])),
    Change("types-set", on(), on(instanceTypes=["b"]), (INSTANCE_TYPE_GIVEN.format(given="b"),)),
    Change("types-removed", on(instanceTypes=["a"]), on(), (), (INSTANCE_TYPE_REQUIRED,)),
    both("types-for-type", on(instanceType="a"), on(instanceTypes=["a", "b"])),
    both("type-for-types", on(instanceTypes=["a"]), on(instanceType="a"), INSTANCE_TYPES_KEPT),
    Change("type-emptied", on(instanceType="a"), on(instanceType=""), (), (INSTANCE_TYPE_REQUIRED,)),
)
