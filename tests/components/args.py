"""The arguments of components, from the models: the text of `plimsoll/components/args.py`."""

import ast
import inspect
import textwrap
import types
from collections.abc import Iterator
from datetime import date
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel

from plimsoll.components.specs import (
    ControllerSpec,
    DataCacheSpec,
    ExistingGpuSoftware,
    FoundationSpec,
    GpuDiscoverySpec,
    GuardSpec,
    MonitoringSpec,
    QueueAdmissionSpec,
    ShareBinderSpec,
    TopologySpec,
    TrainingRuntimeSpec,
)
from plimsoll.model.api import CapacityGateSpec, DeclaredTaint, EnvironmentSpec, NodeProfileSpec, WorkspaceSpec
from plimsoll.model.dra import DeviceClassSpec, ResourceClaimTemplateSpec
from plimsoll.model.kai import QueueSpec
from plimsoll.model.karpenter import NodePoolSpec

HEAD: Final = '''"""The arguments of components, and the values in them, as classes for editors and type checkers.

Generated from the models: `PLIMSOLL_UPDATE_GOLDEN=1 pytest tests/components/test_args.py` writes it anew. A dictionary
is accepted in the place of each class, with the same names. Arguments with plain types determine which objects are
declared, so that Outputs are refused.
"""
# ruff: noqa: F821 (the words of a Literal, which it takes for names)

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Required, TypedDict

import pulumi

if TYPE_CHECKING:
    from typing import Literal

    Later = Awaitable[str] | pulumi.Output[str]
    """The text of an Output may be any, and is validated when it is known."""
    IntOrString = str | int | Later
else:
    # The schema of the package has strings in these places: Pulumi's knows no unions.
    Later = IntOrString = pulumi.Input[str]

    class Literal:
        def __class_getitem__(cls, _):
            return str
'''


class Field(NamedTuple):
    """An argument of a component that is not a field of its model."""

    name: str
    annotation: Any
    text: str
    required: bool = False


class Arguments(NamedTuple):
    model: type[BaseModel]
    others: tuple[Field, ...] = ()


_NAME: Final = (
    Field("name", str, "Name of the object; absent: that of the resource."),
    Field(
        "patch_force",
        bool,
        "Whether an update overwrites fields that other field managers have changed (`pulumi.com/patchForce`). Absent "
        "or false: such an update fails with a conflict that names the field and its manager.",
    ),
)
_NAMESPACE: Final = Field("namespace", str, "Namespace of the object; absent: `default`.")
_LABELS: Final = Field("labels", dict[str, str], "Labels of the object.")

COMPONENTS: Final[dict[str, Arguments]] = {
    "CapacityGate": Arguments(CapacityGateSpec),
    "ClusterTrainingRuntime": Arguments(TrainingRuntimeSpec, (*_NAME, _LABELS)),
    "Controller": Arguments(ControllerSpec),
    "DataCache": Arguments(DataCacheSpec, (*_NAME, _NAMESPACE)),
    "DeviceClass": Arguments(DeviceClassSpec, _NAME),
    "Environment": Arguments(EnvironmentSpec, _NAME),
    "Foundation": Arguments(FoundationSpec),
    "GpuDiscovery": Arguments(
        GpuDiscoverySpec,
        (
            Field(
                "auto_provisioning",
                bool,
                "Whether node auto-provisioning is enabled; if it is not, the mode `auto` of GFD installs GFD.",
            ),
            Field("existing", ExistingGpuSoftware, ""),
            Field(
                "pool_taints",
                tuple[DeclaredTaint, ...],
                "Taints of the pools that hold the GPUs: passed on as tolerations.",
            ),
        ),
    ),
    "Guard": Arguments(GuardSpec, (Field("name", str, "Name of the ConfigMap; absent: that of the resource."),)),
    "Monitoring": Arguments(MonitoringSpec),
    "NodePool": Arguments(NodePoolSpec, _NAME),
    "NodeProfile": Arguments(NodeProfileSpec, _NAME),
    "Queue": Arguments(
        QueueSpec,
        (
            *_NAME,
            _LABELS,
            Field(
                "write_all_amounts",
                bool,
                "Whether amounts that are not set are written with their defaults; absent: true. KAI reads an absent "
                "amount as 0. Set false for an imported Queue that must not change.",
            ),
        ),
    ),
    "QueueAdmission": Arguments(QueueAdmissionSpec),
    "ResourceClaimTemplate": Arguments(ResourceClaimTemplateSpec, (*_NAME, _NAMESPACE, _LABELS)),
    "ShareBinder": Arguments(ShareBinderSpec),
    "Topology": Arguments(TopologySpec, _NAME),
    "TrainingRuntime": Arguments(TrainingRuntimeSpec, (*_NAME, _NAMESPACE, _LABELS)),
    "Workspace": Arguments(WorkspaceSpec, (*_NAME, _NAMESPACE, _LABELS)),
}

PLAIN: Final = {
    "CapacityGateArgs": frozenset(CapacityGateSpec.model_fields),
    "DevicePluginArgs": frozenset({"enabled"}),
    "ExistingGpuSoftwareArgs": frozenset(ExistingGpuSoftware.model_fields),
    "FoundationArgs": frozenset({"served_namespaces"}),
    "GfdArgs": frozenset({"mode"}),
    "GpuDiscoveryArgs": frozenset(
        {
            *("auto_provisioning", "existing", "enabled", "chart", "repository", "version", "namespace"),
            *("create_namespace", "allow_default_namespace", "nvidia_device_plugin", "gfd", "nfd"),
        }
    ),
    "MonitoringArgs": frozenset({"pod_monitor", "dashboard"}),
    "QueueArgs": frozenset({"write_all_amounts"}),
    "ShareBinderArgs": frozenset(ShareBinderSpec.model_fields),
}
"""Arguments that cannot be Outputs, because they determine which objects are declared."""

_NAMED: Final = {
    "DeclaredTaint": "TaintArgs",
    "DeclaredToleration": "TolerationArgs",
    "JobSetSpec": "JobSetSpecArgs",
    "NodeRequirement": "RequirementArgs",
    "ServiceSettings": "ServiceSettingsArgs",
}
_INDENT: Final = "    "
_SIMPLE: Final = {Any: "Any", bool: "bool", date: "str", float: "float", int: "int", str: "str"}


def text() -> str:
    """The whole file. A class comes after those that it names."""
    classes: dict[str, str] = {}
    for component, arguments in COMPONENTS.items():
        _add(f"{component}Args", arguments, classes)
    return "\n\n".join([HEAD, *classes.values()])


def _add(name: str, arguments: Arguments, classes: dict[str, str]) -> None:
    described = _described(arguments.model)
    fields = [
        *arguments.others,
        *(
            Field(field, given.annotation, described.get(field, ""), given.is_required())
            for field, given in arguments.model.model_fields.items()
        ),
    ]
    for field in fields:
        for model in _models(field.annotation):
            if _name(model) not in classes:
                _add(_name(model), Arguments(model), classes)
    lines = [f"class {name}(TypedDict, total=False):"]
    lines += _docstring(inspect.cleandoc(arguments.model.__dict__.get("__doc__") or ""))
    lines += [""] if len(lines) > 1 else []
    for field in fields:
        written = _written(field.annotation, plain=field.name in PLAIN.get(name, ()))
        lines.append(f"    {field.name}: " + (f"Required[{written}]" if field.required else written))
        lines += _docstring(field.text)
    classes[name] = "\n".join(lines) + "\n"


def _name(model: type[BaseModel]) -> str:
    return _NAMED.get(model.__name__) or model.__name__.removesuffix("Spec").removesuffix("Settings") + "Args"


def _written(annotation: Any, *, plain: bool) -> str:
    """The type of an argument, as Python."""
    leaves = list(_leaves(annotation))
    words = [word for leaf in leaves for word in _words(leaf)]
    if len(leaves) > 1:
        assert all(leaf in (str, int) or _words(leaf) for leaf in leaves), annotation
        return "IntOrString"
    (leaf,) = leaves
    if words:
        one_of = "Literal[" + ", ".join(f'"{word}"' for word in words) + "]"
        return one_of if plain else f"{one_of} | Later"
    origin = get_origin(leaf)
    if origin is tuple:
        made = f"list[{_written(get_args(leaf)[0], plain=plain)}]"
    elif origin is dict:
        made = f"Mapping[str, {_written(get_args(leaf)[1], plain=plain)}]"
    elif isinstance(leaf, type) and issubclass(leaf, BaseModel):
        made = _name(leaf)
    else:
        made = _SIMPLE[leaf]
    return made if plain or made == "Any" else f"pulumi.Input[{made}]"


def _words(leaf: Any) -> tuple[str, ...]:
    if get_origin(leaf) is Literal:
        return get_args(leaf)
    return tuple(word.value for word in leaf) if isinstance(leaf, type) and issubclass(leaf, StrEnum) else ()


def _leaves(annotation: Any) -> Iterator[Any]:
    """The alternatives of an annotation, without None."""
    if get_origin(annotation) is Annotated:
        yield from _leaves(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, types.UnionType):
        for alternative in get_args(annotation):
            yield from _leaves(alternative)
    elif annotation is not type(None):
        yield annotation


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


@cache
def _described(model: type[BaseModel]) -> dict[str, str]:
    """The docstrings of fields, from the source: to keep them at run time costs time at each start."""
    found: dict[str, str] = {}
    for parent in reversed(model.__mro__):
        if not parent.__module__.startswith("plimsoll."):
            continue
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(parent))).body
        assert isinstance(definition, ast.ClassDef)
        for statement, following in zip(definition.body, definition.body[1:], strict=False):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                constant = following.value if isinstance(following, ast.Expr) else None
                said = constant.value if isinstance(constant, ast.Constant) else ""
                found[statement.target.id] = inspect.cleandoc(said) if isinstance(said, str) else ""
    return found


def _docstring(said: str) -> list[str]:
    if not said:
        return []
    filled = textwrap.TextWrapper(
        120, initial_indent=_INDENT, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
    )
    return ["\n\n".join(filled.fill(paragraph) for paragraph in f'"""{said}"""'.split("\n\n"))]
