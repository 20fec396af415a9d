"""Documents of YAML and JSON files, each with its place."""

import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from plimsoll.errors import PlimsollError
from plimsoll.yaml_text import YamlLoader

SUFFIXES: Final = (".yaml", ".yml", ".json")
STDIN: Final = "-"
EXPANDED: Final = 5_000_000
"""Maximum number of values of a document after YAML aliases are expanded."""

DEPTH: Final = 100
"""Maximum nesting of objects and lists."""

_ITEMS: Final = re.compile(r'"items"\s*:\s*\[')
_BLANK: Final = re.compile(r"\s*")
_BETWEEN: Final = re.compile(r"[\s,]*")
_TEMPLATE: Final = re.compile(r"\{\{.*\}\}")
"""Go's and Jinja's templates."""


class ManifestError(PlimsollError):
    """A file that cannot be used; the message names file, document and field."""


class Place(NamedTuple):
    """The place of a document."""

    file: str
    document: int
    """Number of the document in the file, from 1."""
    item: int | None = None
    """Number of the item in a List, from 1."""
    line: int | None = None
    """Line where the document or item begins, from 1."""

    def __str__(self) -> str:
        item = "" if self.item is None else f", item {self.item}"
        line = "" if self.line is None else f", line {self.line}"
        return f"{self.file}, document {self.document}{item}{line}"


class Document(NamedTuple):
    place: Place
    value: dict[str, Any]
    item_lines: tuple[int, ...] = ()
    """The line at which each item of a List begins, as far as it is known."""


class _Part(NamedTuple):
    value: Any
    line: int
    item_lines: tuple[int, ...] = ()


def read_documents(paths: Sequence[str]) -> Iterator[Document]:
    """The documents in files, in folders (recursively, sorted by path) and, for `-`, in standard input.

    Empty documents are counted and left out. Fields that are null are removed. Raises ManifestError, also where
    standard input has no document, or all paths together have none: the command that writes them may have failed.
    """
    empty = True
    for path in paths:
        for file in _files(path):
            found = False
            for document in documents_in(file):
                found, empty = True, False
                yield document
            if file == STDIN and not found:
                raise ManifestError("standard input: it has no document", "see whether the command before it failed")
    if empty:
        raise ManifestError(f"{', '.join(map(_name, paths))}: no document found", "name files with manifests")


def documents_in(file: str) -> Iterator[Document]:
    """The documents in one file, which may be empty; see `read_documents`."""
    text = _text(file)
    parts = _json_parts(file, text) if _is_json(file, text) else _yaml_parts(file, text)
    for number, (value, line, item_lines) in enumerate(parts, start=1):
        place = Place(_name(file), number, line=line)
        if value is None:
            continue
        if not isinstance(value, dict):
            raise ManifestError(
                f"{place}: not an object, but {_described(value)}",
                "write each object as a document of its own, or as one of the items of a List",
            )
        yield Document(place, _Pruning(place).prune(value), item_lines)


def _files(path: str) -> list[str]:
    if path == STDIN:
        return [STDIN]
    if not path:
        raise ManifestError("a file's name is empty", "name a file or a directory, or - for standard input")
    if not Path(path).is_dir():
        return [path]
    # Folders such as `.github` are those of tools. A volume of a ConfigMap keeps its files in a folder such as
    # `..2026_11_22`, and links to each of them.
    found = sorted(
        str(file)
        for file in Path(path).rglob("*")
        if file.suffix in SUFFIXES
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    if not found:
        raise ManifestError(f"{path}: no manifests found", f"files that end in {', '.join(SUFFIXES)} are read")
    return found


def _text(file: str) -> str:
    if file == STDIN and sys.stdin is None:
        raise ManifestError("standard input: it is closed", "write manifests to it, or name files")
    try:
        data = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ManifestError(f"{_name(file)}: not UTF-8 text (byte {error.start})", "save the file as UTF-8") from None
    except OSError as error:
        raise ManifestError(f"{_name(file)}: {error.strerror or error}") from None


def _is_json(file: str, text: str) -> bool:
    return file.endswith(".json") or (file == STDIN and text.lstrip().startswith("{"))


def _json_parts(file: str, text: str) -> Iterator[_Part]:
    """The values of concatenated JSON texts, as in the output of `kubectl -o json` and in JSON lines."""
    decoder = json.JSONDecoder(object_pairs_hook=_once)
    position, number, line = 0, 0, 1
    while (begins := _BLANK.match(text, position).end()) < len(text):  # type: ignore[union-attr]  # as in _BETWEEN
        number += 1
        line += text.count("\n", position, begins)
        try:
            value, position = decoder.raw_decode(text, begins)
        except ValueError as error:
            raise ManifestError(f"{Place(_name(file), number)}: not JSON: {error}") from None
        except RecursionError:
            raise ManifestError(f"{Place(_name(file), number)}: nested too deeply") from None
        yield _Part(value, line, _json_item_lines(text, begins, line, value))
        line += text.count("\n", begins, position)


def _json_item_lines(text: str, begins: int, line: int, value: Any) -> tuple[int, ...]:
    """Lines of the items of a List whose text begins at `begins`, in `line`."""
    items = value.get("items") if isinstance(value, dict) else None
    found = _ITEMS.search(text, begins) if isinstance(items, list) else None
    if not isinstance(items, list) or found is None:
        return ()
    lines: list[int] = []
    decoder, position, line = json.JSONDecoder(), found.end(), line + text.count("\n", begins, found.end())
    for item in items:
        start = _BETWEEN.match(text, position).end()  # type: ignore[union-attr]  # it matches nothing as well
        line += text.count("\n", position, start)
        try:
            same, position = decoder.raw_decode(text, start)
        except ValueError:
            return ()
        if same != item:  # an earlier field had the same name
            return ()
        lines.append(line)
        line += text.count("\n", start, position)
    return tuple(lines)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for position, (key, _) in enumerate(pairs) if key in dict(pairs[:position]))
        raise ValueError(f"field {twice!r} occurs twice")
    return found


class _Loader(YamlLoader):
    """A duplicate key is an error."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                    if key.value in seen:
                        raise yaml.constructor.ConstructorError(
                            None, None, f"field {key.value!r} occurs twice", key.start_mark
                        )
                    seen.add(key.value)
        return super().construct_mapping(node, deep)


def _yaml_parts(file: str, text: str) -> Iterator[_Part]:
    number = 0
    try:
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            value = loader.construct_document(node)
            number += 1
            yield _Part(value, node.start_mark.line + 1, tuple(_yaml_item_lines(node)))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        problem = "a tab, and YAML is indented with spaces" if _at_tab(text, mark) else None
        problem = problem or getattr(error, "problem", None) or str(error)
        hint = "it is a template: render it first, as `helm template` does" if _TEMPLATE.search(text) else None
        raise ManifestError(f"{Place(_name(file), number + 1)}{line}: not YAML: {problem}", hint) from None
    except (ValueError, TypeError) as error:
        raise ManifestError(f"{Place(_name(file), number + 1)}: not YAML: {error}") from None
    except RecursionError:
        raise ManifestError(f"{Place(_name(file), number + 1)}: nested too deeply") from None


def _at_tab(text: str, mark: Any) -> bool:
    lines = text.split("\n") if mark is not None else []
    return len(lines) > mark.line and lines[mark.line].startswith("\t", mark.column) if lines else False


def _yaml_item_lines(node: Any) -> Iterator[int]:
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.value == "items" and isinstance(value, yaml.SequenceNode):
            yield from (item.start_mark.line + 1 for item in value.value)


class _Pruning:
    """Removes fields that are null. Rejects values that no Kubernetes object can have, and aliases that expand too
    far."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._left = EXPANDED

    def prune(self, value: dict[str, Any]) -> dict[str, Any]:
        pruned: dict[str, Any] = self._prune(value, DEPTH)
        return pruned

    def _prune(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise ManifestError(f"{self._place}: its aliases expand to more than {EXPANDED} values")
        if depth < 0:
            raise ManifestError(f"{self._place}: nested deeper than {DEPTH} levels")
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str) or not _is_json_value(key):
                    raise ManifestError(f"{self._place}: field {key!r} is not a string", "put it in quotes")
            return {key: self._prune(item, depth - 1) for key, item in value.items() if item is not None}
        if isinstance(value, list):
            return [self._prune(item, depth - 1) for item in value]
        if not _is_json_value(value):
            raise ManifestError(f"{self._place}: {value!r:.60} is not a JSON value")
        return value


def _is_json_value(value: Any) -> bool:
    """Whether the value is allowed in Kubernetes: integers of 64 bits, finite numbers; no sets or bytes, which YAML
    has."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return value.isascii() or value == value.encode("utf-8", "ignore").decode("utf-8")
    return value is None or (isinstance(value, int) and -(2**63) <= value < 2**63)


def _described(value: Any) -> str:
    return "a list" if isinstance(value, list) else f"{value!r:.60}"


def _name(file: str) -> str:
    return "standard input" if file == STDIN else file
