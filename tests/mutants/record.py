"""Which tests run a function: recorded once for each version of a test file, and kept in build/mutants."""

import ast
import hashlib
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final

from tests.mutants.changes import Change
from tests.mutants.checkout import Checkout

_COMMAND: Final = "tests.command"
"""With it, tests run `plimsoll` in another process, where no functions are recorded."""
_FILES_AT_ONCE: Final = 50
_SECONDS: Final = 3600.0


@dataclass(frozen=True)
class TestRun:
    """What was recorded of one test."""

    name: str
    seconds: float
    functions: frozenset[str]

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]


@dataclass(frozen=True)
class Record:
    """The tests that passed, unchanged, in a copy of the checkout."""

    tests: tuple[TestRun, ...]
    sources: Mapping[str, str]
    """The text of each module, by its path."""
    imports: Mapping[str, frozenset[str]]
    """What each test file imports of Plimsoll."""
    commands: frozenset[str]
    """The test files that run `plimsoll` in another process."""

    def that_see(self, path: str, change: Change) -> list[list[TestRun]]:
        """The tests that can find a change: first those that run the function and import its package, then the others
        that run it, then those that run commands."""
        running = self._running(path, change)
        package = path.rpartition("/")[0].replace("/", ".")
        near = [test for test in running if package in self.imports[test.file]]
        far = [test for test in running if package not in self.imports[test.file]]
        commands = [test for test in self.tests if test.file in self.commands]
        return [tests for tests in (near, far, [test for test in commands if test not in running]) if tests]

    def _running(self, path: str, change: Change) -> list[TestRun]:
        if not change.names:
            ran = [test for test in self.tests if f"{path}:{change.function}" in test.functions]
            return ran or self._of_module(path)
        users = self._users(change.names)
        return [test for test in self.tests if test.functions & users] or self._of_module(path)

    def _of_module(self, path: str) -> list[TestRun]:
        """For a function that was written since, or that no test runs: those that run others of its module."""
        return [test for test in self.tests if any(name.startswith(f"{path}:") for name in test.functions)]

    def _users(self, names: frozenset[str]) -> set[str]:
        """Functions that use one of these names, or a name at the top of a module that is made of them."""
        users: set[str] = set()
        pending, seen = set(names), set(names)
        while pending:
            name = pending.pop()
            users |= self._uses[0][name]
            pending |= self._uses[1][name] - seen
            seen |= self._uses[1][name]
        return users

    @cached_property
    def _uses(self) -> tuple[Mapping[str, set[str]], Mapping[str, set[str]]]:
        """By a name: the functions that use it, and the constants of modules that are made of it."""
        functions: dict[str, set[str]] = defaultdict(set)
        constants: dict[str, set[str]] = defaultdict(set)

        def enter(path: str, node: ast.AST, within: tuple[str, ...]) -> None:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                    function = f"{path}:{'.'.join((*within, child.name))}"
                    for name in _names(child):
                        functions[name].add(function)
                    enter(path, child, (*within, child.name))
                elif isinstance(child, ast.ClassDef):
                    enter(path, child, (*within, child.name))
                elif isinstance(child, ast.Assign | ast.AnnAssign) and not within and child.value is not None:
                    targets = child.targets if isinstance(child, ast.Assign) else [child.target]
                    bound = {target.id for target in targets if isinstance(target, ast.Name)} - {"__all__"}
                    for name in _names(child.value):
                        constants[name] |= bound

        for path, source in self.sources.items():
            enter(path, ast.parse(source), ())
        return functions, constants


def record(
    checkout: Checkout, kept: Path, processes: int, report: Callable[[str], None], rooms: Collection[str] = ()
) -> Record:
    """Runs each test file that is not recorded yet, once. With `rooms`, which are packages of Plimsoll, only the files
    that import one of them, or are in a folder of that name, are known."""
    texts = {str(file.relative_to(checkout.folder)): file.read_text() for file in checkout.folder.glob("tests/**/*.py")}
    imports = _Imports(texts)
    files = {
        file: text
        for file, text in sorted(texts.items())
        if Path(file).name.startswith("test_") and not file.startswith("tests/e2e/")
        if not rooms or any(imports.reach(file, room) for room in rooms)
    }
    known = json.loads(kept.read_text()) if kept.exists() else {}
    digests = {file: hashlib.sha256(text.encode()).hexdigest() for file, text in files.items()}
    new = sorted(file for file in files if known.get(file, {}).get("digest") != digests[file])
    if new:
        report(f"recording which functions the tests of {len(new)} files run; this is done once for each of them")
    for start in range(0, len(new), _FILES_AT_ONCE):  # as whoever interrupts this goes on there
        files_now = new[start : start + _FILES_AT_ONCE]
        recorded = _recorded(checkout, files_now, processes)
        for file in files_now:
            tests = {test: entry for test, entry in recorded.items() if test.partition("::")[0] == file}
            if tests:
                known[file] = {"digest": digests[file], "tests": tests}
            else:
                known.pop(file, None)
                report(f"{file} counts for nothing: none of its tests ran")
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(known))
    passed = tuple(
        TestRun(test, entry["seconds"], frozenset(entry["functions"]))
        for file in sorted(files.keys() & known)
        for test, entry in known[file]["tests"].items()
        if entry["passed"]
    )
    return Record(
        passed,
        {str(p.relative_to(checkout.folder)): p.read_text() for p in checkout.folder.glob("plimsoll/**/*.py")},
        {file: imports.of(file) for file in files},
        frozenset(file for file in files if _COMMAND in imports.of(file)),
    )


class _Imports:
    """What test files import, also by other files of the tests: those they import, and their folder's conftest.py."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    @cache  # noqa: B019 - as long as the tool runs
    def of(self, file: str) -> frozenset[str]:
        found, pending = set[str](), [file, f"{Path(file).parent}/conftest.py"]
        seen = set(pending)
        while pending:
            names = _imports(self._texts.get(pending.pop(), ""))
            found |= names
            others = {f"{name.replace('.', '/')}.py" for name in names if name.startswith("tests.")} - seen
            seen |= others
            pending += others
        return frozenset(found)

    def reach(self, file: str, room: str) -> bool:
        return (
            any(name.split(".")[:2] == ["plimsoll", room] for name in self.of(file))
            or _COMMAND in self.of(file)
            or file.startswith(f"tests/{room}/")
        )


def _recorded(checkout: Checkout, files: Iterable[str], processes: int) -> dict[str, dict[str, object]]:
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["-p", "tests.mutants.tracing", "-n", str(processes), "--dist", "loadgroup", *files]
        checkout.pytest(arguments, _SECONDS, MUTANTS_RECORD=folder)
        recorded: dict[str, dict[str, object]] = {}
        for part in Path(folder).glob("*.json"):
            recorded |= json.loads(part.read_text())
    return recorded


def _imports(source: str) -> frozenset[str]:
    nodes = list(ast.walk(ast.parse(source)))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return frozenset(plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)})


def _names(node: ast.AST) -> set[str]:
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    names |= {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return names | {part.arg for part in ast.walk(node) if isinstance(part, ast.keyword) and part.arg}
