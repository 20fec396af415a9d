"""What all components share: recorded arguments, an engine that is new enough, and a single object's options."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import pulumi
from pulumi.runtime.settings import get_engine
from pydantic.alias_generators import to_snake

from plimsoll.components.declaring.declaration import Model, checked, fields_of, metadata
from plimsoll.components.declaring.inputs import is_later
from plimsoll.errors import PlimsollError
from plimsoll.kubernetes_sdk import k8s

ENGINE: Final = ">=3.200.0 <4.0.0"
"""Versions of the pulumi CLI that the components work with; the packages' ranges are in pyproject.toml."""

_AROUND: Final = ("name", "patch_force")


class EngineVersionError(PlimsollError, pulumi.RunError):
    """The pulumi CLI is too old, or too new. Pulumi ends the program with the message alone."""


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
        self._args = {to_snake(key): value for key, value in fields_of(args).items()}
        self._for_object, own = _divided(opts)
        super().__init__(f"plimsoll:index:{kind}", name, fields_of(args), own)

    def given(self, argument: str, default: Any = None) -> Any:
        """An argument, in either spelling of its name; `default` where it is absent, or None."""
        value = self._args.get(argument, default)
        if default is None or not is_later(value):
            return value
        return pulumi.Output.from_input(value).apply(lambda known: default if known is None else known)

    def named(self, name: str) -> str:
        """Resource name of a child. It begins with the component's, because two components of a program may declare the
        same objects in two clusters."""
        return f"{self._name_given}-{name}"

    def child(self, *depends_on: pulumi.Resource, former_name: str | None = None) -> pulumi.ResourceOptions:
        """Options of a child; `former_name` was its resource name in release 0.1."""
        return pulumi.ResourceOptions(
            parent=self,
            depends_on=list(depends_on) or None,
            aliases=[pulumi.Alias(name=former_name)] if former_name is not None else None,
        )

    def _object(
        self,
        kind: ObjectType,
        model: type[Model],
        convert: Callable[[Model], dict[str, Any]],
        *,
        name: str | None = None,
        namespace: pulumi.Input[str] | None = None,
        labels: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        annotations: pulumi.Input[dict[str, Any]] | None = None,
        others: tuple[str, ...] = (),
        immutable: bool = False,
    ) -> Any:
        """The component's one object. `others` are arguments that are not fields of the model; `name` is for a
        component without an argument `name`. If the cluster refuses changes of its spec (`immutable`), a changed one
        replaces the object, which is deleted before because the name stays.

        Raises InvalidArgumentError if an argument is invalid.
        """
        if name is None:
            others = (*others, *_AROUND)
        if namespace is not None:
            others = (*others, "namespace")
        around = metadata(
            name or self.given("name", self._name_given),
            namespace,
            labels,
            annotations=annotations,
            skip_await=True,
            patch_force=self.given("patch_force"),
        )
        # The engine refuses to replace what it imports, whose spec it shows as changed.
        replaced = immutable and self._for_object.import_ is None
        own = pulumi.ResourceOptions(
            parent=self,
            replace_on_changes=["spec"] if replaced else None,
            delete_before_replace=replaced or None,
        )
        return k8s.apiextensions.CustomResource(
            self._name_given,
            api_version=kind.api_version,
            kind=kind.kind,
            metadata=around,
            spec=checked(model, kind.kind, self._name_given, fields_of(self._args, *others), convert),
            opts=pulumi.ResourceOptions.merge(own, self._for_object),
        )


def require_engine() -> None:
    """Raises EngineVersionError if the version of the engine that runs the program is not in `ENGINE`."""
    if not hasattr(get_engine(), "RequirePulumiVersion"):
        return  # a unit test with mocks
    try:
        pulumi.require_pulumi_version(ENGINE)
    except Exception as error:  # the version does not match, or the engine is too old to answer
        raise EngineVersionError(
            f"Plimsoll needs a pulumi CLI of version {ENGINE}: {error}", "install another: pulumi.com/docs/install"
        ) from None


def name_of(resource: pulumi.Resource, given: pulumi.Input[str] | None = None) -> pulumi.Output[str]:
    """The name of an object. It is secret only if `given`, the declared name, is: a secret label does not make it
    secret."""
    return _of_metadata(resource, "name", given)


def namespace_of(resource: pulumi.Resource, given: pulumi.Input[str] | None = None) -> pulumi.Output[str]:
    """The namespace of an object. It is secret only if `given`, the declared namespace, is."""
    return _of_metadata(resource, "namespace", given)


def uid_of(resource: pulumi.Resource) -> pulumi.Output[str]:
    """The UID of an object; empty in the preview of its creation."""
    return _of_metadata(resource, "uid").apply(lambda uid: uid or "")


def _of_metadata(resource: Any, field: str, given: pulumi.Input[str] | None = None) -> pulumi.Output[str]:
    """A field of the metadata. Pulumi marks all of the metadata as secret if a part of it is."""
    metadata = pulumi.Output.unsecret(resource.metadata)
    found: pulumi.Output[str] = pulumi.Output.all(metadata, given).apply(lambda both: both[0].get(field))
    return found


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
