"""What all components share: recorded arguments, an engine that is new enough, and a single object's options."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypedDict

import pulumi
from pulumi.runtime.settings import get_engine
from pulumi_kubernetes.apiextensions import CustomResource

from plimsoll.components.declaring.declaration import Model, checked, fields_of, metadata
from plimsoll.errors import PlimsollError

ENGINE: Final = ">=3.200.0 <4.0.0"
"""Versions of the pulumi CLI that the components work with; the packages' ranges are in pyproject.toml."""

_AROUND: Final = ("name", "patch_force", "patchForce")


class EngineVersionError(PlimsollError, pulumi.RunError):
    """The pulumi CLI is too old, or too new. Pulumi ends the program with the message alone."""


class ObjectArgs(TypedDict, total=False):
    """Of every component that declares one object."""

    name: pulumi.Input[str]
    """Name of the object; absent: that of the resource."""
    patch_force: pulumi.Input[bool]
    """Whether an update takes back the fields that somebody else has changed (`pulumi.com/patchForce`).

    Absent or false: such an update fails with a conflict that names the field and its manager."""


class ObjectType(NamedTuple):
    """The kind of a component's one object."""

    api_version: str
    kind: str


class Component(pulumi.ComponentResource):
    """A component of the package `plimsoll`, with its arguments as its inputs.

    Options that are for an object (`ignore_changes`, `replace_on_changes`, `delete_before_replace`, `custom_timeouts`,
    `import_`) go to the component's one object; the others are inherited by all its children.
    """

    def __init__(
        self, kind: str, name: str, args: Mapping[str, Any], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        require_engine()
        self._name_given = name
        self._for_object, own = _divided(opts)
        super().__init__(f"plimsoll:index:{kind}", name, fields_of(args), own)

    def named(self, name: str) -> str:
        """Of a child: two components of a program may have the same objects, by two providers."""
        return f"{self._name_given}-{name}"

    def child(self, name: str, *depends_on: pulumi.Resource) -> pulumi.ResourceOptions:
        """Options of the child `named(name)`; stacks of release 0.1 know it by `name` alone."""
        return pulumi.ResourceOptions(
            parent=self, depends_on=list(depends_on) or None, aliases=[pulumi.Alias(name=name)]
        )

    def _object(
        self,
        kind: ObjectType,
        args: Mapping[str, Any],
        model: type[Model],
        convert: Callable[[Model], dict[str, Any]],
        *,
        namespace: pulumi.Input[str] | None = None,
        labels: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        annotations: pulumi.Input[dict[str, Any]] | None = None,
        others: tuple[str, ...] = (),
    ) -> CustomResource:
        """The component's one object. `others` of the arguments are none of the model's fields.

        Raises InvalidArgumentError where an argument does not fit.
        """
        name = self._name_given
        if namespace is not None:
            others = (*others, "namespace")
        around = metadata(
            args.get("name", name),
            namespace,
            labels,
            skip_await=True,
            patch_force=args.get("patch_force", args.get("patchForce")),
        )
        if annotations is not None:
            own = around["annotations"]
            around["annotations"] = {**annotations, **own} if isinstance(annotations, dict) else annotations
        return CustomResource(
            name,
            api_version=kind.api_version,
            kind=kind.kind,
            metadata=around,
            spec=checked(model, kind.kind, name, fields_of(args, *_AROUND, *others), convert),
            opts=pulumi.ResourceOptions.merge(pulumi.ResourceOptions(parent=self), self._for_object),
        )


def require_engine() -> None:
    """Raises EngineVersionError where the engine that runs the program is none of `ENGINE`."""
    if not hasattr(get_engine(), "RequirePulumiVersion"):
        return  # a unit test with mocks
    try:
        pulumi.require_pulumi_version(ENGINE)
    except Exception as error:  # of the engine, or of one that does not know the question
        raise EngineVersionError(
            f"Plimsoll needs a pulumi CLI of version {ENGINE}: {error}", "install another: pulumi.com/docs/install"
        ) from None


def uid_of(resource: CustomResource) -> pulumi.Output[str]:
    """The UID of an object; empty in the preview of its creation."""
    uid: pulumi.Output[str] = resource.metadata.apply(lambda known: str(known.get("uid") or ""))
    return uid


def _divided(opts: pulumi.ResourceOptions | None) -> tuple[pulumi.ResourceOptions, pulumi.ResourceOptions | None]:
    """The options of the object, and those of the component."""
    if opts is None:
        return pulumi.ResourceOptions(), None
    of_object = pulumi.ResourceOptions(
        ignore_changes=opts.ignore_changes,
        replace_on_changes=opts.replace_on_changes,
        delete_before_replace=opts.delete_before_replace,
        custom_timeouts=opts.custom_timeouts,
        import_=opts.import_,
    )
    own = pulumi.ResourceOptions.merge(opts, None)
    own.ignore_changes = own.replace_on_changes = own.delete_before_replace = None
    own.custom_timeouts = own.import_ = None
    return of_object, own
