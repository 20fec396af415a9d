"""YAML as Kubernetes and Helm read it (sigs.k8s.io/yaml), which differs from PyYAML in what an unquoted text is.

What is written is read alike by both.
"""

import re
from typing import Any, ClassVar, Final

import yaml

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG: Final = "tag:yaml.org,2002:"
_SAME: Final = {f"{_TAG}{name}" for name in ("bool", "merge", "null")}


class YamlLoader(_Base):  # type: ignore[misc]  # libyaml's loader where it is built in, else the slow one
    """Times, `=` and `10:20` are texts, `y` and `n` are booleans, and `1e3`, `08` and `0o17` are numbers."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag in _SAME]
        for first, resolvers in _Base.yaml_implicit_resolvers.items()
    }
    bool_values: ClassVar[dict[str, bool]] = {**_Base.bool_values, "y": True, "n": False}


def _add(name: str, pattern: str, first: str) -> None:
    YamlLoader.add_implicit_resolver(f"{_TAG}{name}", re.compile(f"(?:{pattern})$"), list(first))


_add("bool", "[yYnN]", "yYnN")
_add(
    "int",
    r"[-+]?(?:0|[1-9][0-9_]*|0[0-7_]+|0o[0-7][0-7_]*|0b[01][01_]*|0x[0-9a-fA-F][0-9a-fA-F_]*)",
    "-+0123456789",
)
_add("float", r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9]+)(?:[eE][-+]?[0-9][0-9_]*)?", "-+.0123456789")
_add("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+.")


def problem_of(error: yaml.YAMLError) -> str:
    """What is wrong and where, in one line. PyYAML calls the text of a file "<unicode string>"."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    return where + " ".join(str(problem or error).replace('in "<unicode string>", ', "").split())


class YamlDumper(yaml.SafeDumper):
    """Quotes texts that would be read as another type, by PyYAML or by Kubernetes."""


for _first, _resolvers in YamlLoader.yaml_implicit_resolvers.items():
    for _tag, _pattern in _resolvers:
        YamlDumper.add_implicit_resolver(_tag, _pattern, [_first])


def write_yaml(value: Any, **options: Any) -> str:
    """The value as one document, with fields in their order; `options` are those of `yaml.dump`."""
    text: str = yaml.dump(value, Dumper=YamlDumper, **{"sort_keys": False, **options})
    return text
