"""Which tests run a line: recorded once for each version of a test file, and kept in build/mutants.json."""

import ast
import hashlib
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

from tests.mutants.changes import Change, lines_of
from tests.mutants.checkout import Checkout

_COMMAND: Final = "tests.command"
"""With it, tests run `plimsoll` in another process, where nothing is recorded."""
_OF_COMMANDS: Final = "cli"
"""The room that tests run by commands. The functions of the others are called by tests, too."""
_FILES_AT_ONCE: Final = 10
_SECONDS: Final = 3600.0


@dataclass(frozen=True)
class TestRun:
    """What was recorded of one test."""

    name: str
    seconds: float

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]


@dataclass(frozen=True)
class Record:
    """The tests that passed, unchanged, in a copy of the checkout."""

    tests: Mapping[str, Mapping[int, TestRun]]
    """By their file, and by their position in it."""
    lines: Mapping[str, Mapping[str, Mapping[str, int]]]
    """By a test's file, a module's path, and the function and text of a line, as in `lines_of`: the positions of the
    tests that run it, as bits."""
    sources: Mapping[str, str]
    """The text of each module, by its path."""
    imports: Mapping[str, frozenset[str]]
    """What each test file imports of Plimsoll."""
    commands: frozenset[str]
    """The test files that run `plimsoll` in another process."""

    def that_see(self, path: str, change: Change) -> list[list[TestRun]]:
        """The tests that can find a change, the fastest first: those that run the line and import its package, then the
        others that run it, then those that run commands."""
        running = self._running(path, change)
        package = path.rpartition("/")[0].replace("/", ".")
        near = [test for test in running if package in self.imports[test.file]]
        far = [test for test in running if package not in self.imports[test.file]]
        commands: list[TestRun] = []
        if not running or path.startswith(f"plimsoll/{_OF_COMMANDS}/"):
            commands = [
                test for file in sorted(self.commands & self.tests.keys()) for test in self.tests[file].values()
            ]
        stages = (near, far, [test for test in commands if test not in running])
        return [sorted(tests, key=lambda test: (test.seconds, test.name)) for tests in stages if tests]

    def _running(self, path: str, change: Change) -> list[TestRun]:
        """Those that run the line; for one that was written since, or that is a part of a statement, its function; for
        a function that no test runs, others of its module."""
        if change.names:
            users = self._users(change.names)
            ran = list(self._that_run(lambda module, line: f"{module}:{line.partition(':')[0]}" in users))
        else:
            changed = lines_of(self.sources[path]).get(change.line)
            ran = list(self._that_run(lambda module, line: module == path and line == changed))
            within = f"{change.function}:"
            ran = ran or list(self._that_run(lambda module, line: module == path and line.startswith(within)))
        return ran or list(self._that_run(lambda module, _: module == path))

    def _that_run(self, wanted: Callable[[str, str], bool]) -> Iterator[TestRun]:
        for file, modules in self.lines.items():
            bits = 0
            for module, lines in modules.items():
                for line, tests in lines.items():
                    if wanted(module, line):
                        bits |= tests
            yield from (test for position, test in self.tests[file].items() if bits >> position & 1)

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
    that import one of them, or are in a folder of that name, are known, and for that of the commands those that run
    commands."""
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
        report(f"recording which lines the tests of {len(new)} files run; this is done once for each of them")
    for start in range(0, len(new), _FILES_AT_ONCE):  # as whoever interrupts this goes on there
        files_now = new[start : start + _FILES_AT_ONCE]
        recorded = _recorded(checkout, files_now, processes)
        for file in sorted(set(files_now) - recorded.keys()):  # one that cannot be collected keeps all from running
            recorded |= _recorded(checkout, [file], processes)
        for file in files_now:
            if file in recorded:
                known[file] = {"digest": digests[file], **recorded[file]}
            else:
                known.pop(file, None)
                report(f"{file} counts for nothing: none of its tests ran")
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(known))
    recorded_files = sorted(files.keys() & known)
    return Record(
        {
            file: {
                n: TestRun(test, seconds) for n, (test, seconds, passed) in enumerate(known[file]["tests"]) if passed
            }
            for file in recorded_files
        },
        {file: known[file]["lines"] for file in recorded_files},
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
            or (room == _OF_COMMANDS and _COMMAND in self.of(file))
            or file.startswith(f"tests/{room}/")
        )


def _recorded(checkout: Checkout, files: Iterable[str], processes: int) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["-p", "tests.mutants.tracing", "-n", str(processes), "--dist", "loadgroup", *files]
        checkout.pytest(arguments, _SECONDS, MUTANTS_RECORD=folder)
        parts = [json.loads(part.read_text()) for part in Path(folder).glob("*.json")]
    recorded: dict[str, dict[str, Any]] = {}
    for part in parts:
        bits = {}
        for name, (seconds, passed) in part["tests"].items():
            tests = recorded.setdefault(name.partition("::")[0], {"tests": [], "lines": {}})["tests"]
            bits[name] = 1 << len(tests)
            tests.append((name, seconds, passed))
        for module, lines in part["lines"].items():
            for line, names in lines.items():
                for name in names:
                    ran = recorded[name.partition("::")[0]]["lines"].setdefault(module, {})
                    ran[line] = ran.get(line, 0) | bits[name]
    return recorded


def _imports(source: str) -> frozenset[str]:
    nodes = list(ast.walk(ast.parse(source)))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return frozenset(plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)})


def _names(node: ast.AST) -> set[str]:
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    names |= {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return names | {part.arg for part in ast.walk(node) if isinstance(part, ast.keyword) and part.arg}
