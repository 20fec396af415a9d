"""Rules on images of containers and of volumes: pinned tags everywhere, digests where an option requires them."""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from pydantic import Field

from plimsoll.labels import GROUP
from plimsoll.model.meta import Declared, section
from plimsoll.policy.cel import POD_VARIABLES, matches, option, value
from plimsoll.policy.context import PolicyContext
from plimsoll.policy.fields import Manifest, is_kind, is_list, items, join, namespace_of, text
from plimsoll.policy.pod_templates import pod_templates
from plimsoll.policy.rule import Cel, Family, Fault, Rule, Subject
from plimsoll.policy.rules.training import is_train_job
from plimsoll.policy.workspaces import workspace_of

VALUES_KIND: Final = "Values"
"""Values of a chart, which have no kind."""
TAG_RULE: Final = "image-tag-pinned"
DIGEST_RULE: Final = "image-digest"

_DIGEST: Final = r".+@sha(?:256:[0-9a-f]{64}|512:[0-9a-f]{128})"
_TAGGED: Final = r"(?:.*/)?[^/:@]+:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(?:@.*)?"
_LATEST: Final = r"(?:.*/)?[^/:@]+:latest(?:-[A-Za-z0-9_.-]*)?(?:@.*)?"
_READS: Final = (
    "Pod",
    "objects with a pod template",
    "TrainJob",
    "Workspace",
    "InferenceSet",
    "Environment",
    "chart values",
)


class Image(NamedTuple):
    field: str
    name: str

    @property
    def has_digest(self) -> bool:
        return re.fullmatch(_DIGEST, self.name) is not None

    @property
    def pinned(self) -> bool:
        """Has a digest, or a tag that is not `latest` and does not begin with `latest-`."""
        return self.has_digest or (
            re.fullmatch(_TAGGED, self.name) is not None and re.fullmatch(_LATEST, self.name) is None
        )


class DigestOptions(Declared):
    required: bool = Field(default=False, strict=True)
    namespaces: tuple[str, ...] = ()
    """Where a digest is required; empty: everywhere."""


def images(manifest: Manifest) -> Iterator[Image]:
    """Every image that the object uses."""
    for template in pod_templates(manifest):
        for path, container in template.containers():
            yield from _image(container, "image", path)
        for number, volume in items(template.spec, "volumes"):
            yield from _volume(volume, join(template.path, "spec", "volumes", number))
    if is_train_job(manifest):
        yield from _image(section(manifest, "spec", "trainer"), "image", "spec.trainer")
    workspace = workspace_of(manifest)
    if workspace is not None:
        inference = section(workspace.spec, "inference")
        path = join(workspace.path, "inference")
        preset = section(inference, "preset", "presetOptions")
        yield from _image(preset, "image", join(path, "preset", "presetOptions"))
        for number, adapter in items(inference, "adapters"):
            source = section(adapter, "source")
            yield from _image(source, "image", join(path, "adapters", number, "source"))
            yield from _volume(
                section(source, "volumeSource"), join(path, "adapters", number, "source", "volumeSource")
            )
        yield from _volume(section(inference, "weights", "volumeSource"), join(path, "weights", "volumeSource"))
        yield from _image(section(workspace.spec, "tuning", "input"), "image", join(workspace.path, "tuning", "input"))
    elif is_kind(manifest, GROUP, "Environment"):
        yield from _image(section(manifest, "spec"), "inferenceImage", "spec")
        yield from _image(section(manifest, "spec", "demand"), "image", "spec.demand")
        yield from _volume(section(manifest, "spec", "weights", "volumeSource"), "spec.weights.volumeSource")
    elif is_kind(manifest, "", VALUES_KIND):
        yield from _of_values(section(manifest, "values"), "")


def _image(parent: Manifest, name: str, path: str) -> Iterator[Image]:
    if text(parent, name):
        yield Image(join(path, name), text(parent, name))


def _volume(volume: Manifest, path: str) -> Iterator[Image]:
    """The image that a volume mounts, such as one with a model."""
    yield from _image(section(volume, "image"), "reference", join(path, "image"))


def _of_values(values: Manifest, path: str) -> Iterator[Image]:
    """`image: name:tag`, and `image: {registry, repository, tag, digest}`, however deep.

    Without a tag a chart uses its own version, so only a given tag is checked.
    """
    for name, item in values.items():
        here = join(path, name)
        if name.lower().endswith("image") and isinstance(item, str) and item:
            yield Image(here, item)
        elif isinstance(item, dict) and text(item, "repository") and (item.get("tag") or item.get("digest")):
            repository = "/".join(each for each in (text(item, "registry"), text(item, "repository")) if each)
            tag = f":{item['tag']}" if item.get("tag") else ""
            digest = f"@{item['digest']}" if item.get("digest") else ""
            yield Image(join(here, "tag" if tag else "digest"), f"{repository}{tag}{digest}")
        elif isinstance(item, dict):
            yield from _of_values(item, here)
        elif is_list(item):
            for number, each in enumerate(item):
                if isinstance(each, dict):
                    yield from _of_values(each, join(here, number))


def _tags(manifest: Manifest, context: PolicyContext, _: Any) -> Iterator[Fault]:
    for image in images(manifest):
        if not image.pinned:
            yield Fault(
                image.field,
                f"the image is {image.name!r:.200}, which can change between pulls: set a version, such as "
                "'name:1.2.3', or a digest",
            )


def _digests(manifest: Manifest, context: PolicyContext, options: DigestOptions) -> Iterator[Fault]:
    if not options.required or (options.namespaces and namespace_of(manifest) not in options.namespaces):
        return
    for image in images(manifest):
        if not image.has_digest:
            yield Fault(
                image.field, f"the image is {image.name!r:.200}, and a digest is required: use 'name@sha256:...'"
            )


_VARIABLES: Final = {
    **POD_VARIABLES,
    "volumes": value("variables.pod", "spec.volumes", "[]"),
    "images": "(variables.containers.filter(each, has(each.image)).map(each, each.image)"
    " + variables.volumes.filter(each, has(each.image) && has(each.image.reference)).map(each, each.image.reference))"
    ".filter(each, each != '')",
}
_PINNED: Final = f"{matches('each', _DIGEST)} || ({matches('each', _TAGGED)} && !{matches('each', _LATEST)})"

RULES: Final = (
    Rule(
        TAG_RULE,
        Family.SUPPLY_CHAIN,
        "An image has a version or a digest; `latest` is not a version.",
        "Set a version, such as 'name:1.2.3', or a digest.",
        _READS,
        _tags,
        severity=None,
        cel=Cel((Subject.PODS,), f"variables.images.all(each, {_PINNED})", _VARIABLES),
    ),
    Rule(
        DIGEST_RULE,
        Family.SUPPLY_CHAIN,
        "An image has a digest, if the option `required` is set.",
        "Use 'name@sha256:...'. The option `namespaces` limits the rule to these namespaces.",
        _READS,
        _digests,
        options=DigestOptions,
        cel=Cel(
            (Subject.PODS,),
            "!variables.required"
            " || (size(variables.namespaces) > 0 && !(variables.namespaceName in variables.namespaces))"
            f" || variables.images.all(each, {matches('each', _DIGEST)})",
            {
                **_VARIABLES,
                "required": option(DIGEST_RULE, "required", "false"),
                "namespaces": option(DIGEST_RULE, "namespaces", "[]"),
                "namespaceName": value("object", "metadata.namespace", "''"),
            },
        ),
    ),
)
