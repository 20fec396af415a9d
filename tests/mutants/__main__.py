"""`make mutants`: changes the code in random places, one at a time, and tells which changes no unit test finds.

Each change is made in a copy of the checkout. The unit tests that run the changed line run, the fastest first, until
one fails or those left take longer than `--seconds`; a change with which they never end, or take too much memory, is
found, too. Those that survive are printed as diffs: whoever reads them judges which change nothing that can be
observed, and writes a test for each other one, or removes the code.

Which lines a test runs is recorded once for each version of its file, in build/mutants.json; without the file, all of
it is recorded anew. With ROOMS, which are packages, tests count that import one of them, also by other files of the
tests. The sandbox is left out, because end-to-end tests run it.
"""

import argparse
import difflib
import os
import random
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.mutants.changes import Change, changes_of, makes_a_difference
from tests.mutants.checkout import Checkout
from tests.mutants.record import Record, TestRun, record

_ROOT: Final = Path(__file__).resolve().parents[2]
_BY_END_TO_END_TESTS: Final = frozenset({"sandbox"})
"""Rooms that end-to-end tests run, which no mutant waits for."""
_START_SECONDS: Final = 120.0
_PASSED, _NO_TESTS = 0, 5


@dataclass(frozen=True)
class Mutant:
    """A change of one file."""

    path: str
    change: Change

    @property
    def room(self) -> str:
        """The package below plimsoll, or the module beside the packages."""
        return self.path.split("/")[1].removesuffix(".py")

    def diff(self, source: str) -> str:
        before, after = source.splitlines(keepends=True), self.change.made(source).splitlines(keepends=True)
        return "".join(difflib.unified_diff(before, after, self.path, self.path, n=2))


def drawn(sources: Mapping[str, str], number: int, seed: int) -> list[Mutant]:
    """Mutants of these modules: a line is drawn, then a kind of change on it, then one of this kind. The same seed
    draws the same from the same sources."""
    generator = random.Random(seed)
    lines: dict[tuple[str, int], list[Change]] = {}
    for path in sorted(sources):
        for change in changes_of(sources[path]):
            lines.setdefault((path, change.line), []).append(change)
    mutants: list[Mutant] = []
    for path, line in generator.sample(sorted(lines), len(lines)):
        if len(mutants) == number:
            break
        kinds: dict[str, list[Change]] = {}
        for change in lines[path, line]:
            if makes_a_difference(change, sources[path]):
                kinds.setdefault(change.kind, []).append(change)
        if kinds:
            mutants.append(Mutant(path, generator.choice(kinds[generator.choice(sorted(kinds))])))
    return mutants


def finder(mutant: Mutant, known: Record, checkout: Checkout, seconds: float) -> str | None:
    """The test that fails, the end of what pytest printed if it fails otherwise, or nothing if the mutant survives.
    Tests run that took `seconds` together when they were recorded."""
    with checkout.changed(mutant.path, mutant.change.made(known.sources[mutant.path])):
        for tests in _within(seconds, known.that_see(mutant.path, mutant.change)):
            selection = checkout.folder / "build" / "selection"
            selection.parent.mkdir(exist_ok=True)
            selection.write_text("".join(f"{test.name}\n" for test in tests))
            arguments = [
                "-x",
                "--assert=plain",
                "-p",
                "tests.mutants.selection",
                *dict.fromkeys(test.file for test in tests),
            ]
            limit = _START_SECONDS + 10 * sum(test.seconds for test in tests)
            try:
                done = checkout.pytest(arguments, limit, MUTANTS_SELECTION=str(selection))
            except subprocess.TimeoutExpired:
                return f"no end after {limit:.0f} s"
            if done.returncode not in (_PASSED, _NO_TESTS):
                lines = done.stdout.splitlines()
                failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
                return failed[0].split(" - ")[0] if failed else " ".join(lines[-1:])
    return None


def _within(seconds: float, stages: Iterable[list[TestRun]]) -> Iterator[list[TestRun]]:
    """The first tests of these, as long as they take no longer together; the first one in any case."""
    left = seconds
    for stage in stages:
        chosen = []
        for test in stage:
            if test.seconds <= left or left == seconds:
                left -= test.seconds
                chosen.append(test)
        if chosen:
            yield chosen


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--number", type=int, default=60, help="how many changes are made")
    parser.add_argument("--seed", type=int, default=0, help="which ones: the same seed makes the same again")
    parser.add_argument("--rooms", nargs="*", default=[], help="packages of plimsoll, and the tests that import them")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long tests run for one change, by the record")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many run at once")
    options = parser.parse_args()
    rooms = set(options.rooms)
    with tempfile.TemporaryDirectory() as folder:
        copies = [Checkout(_ROOT, Path(folder) / str(number)) for number in range(options.processes)]
        known = record(copies[0], _ROOT / "build" / "mutants.json", options.processes, _say, rooms)
        chosen = {
            path: source
            for path, source in known.sources.items()
            for room in (path.split("/")[1].removesuffix(".py"),)
            if (room in rooms if rooms else room not in _BY_END_TO_END_TESTS)
        }
        mutants = drawn(chosen, options.number, options.seed)
        free: SimpleQueue[Checkout] = SimpleQueue()
        for copy in copies:
            free.put(copy)

        def tried(mutant: Mutant) -> str | None:
            checkout, began, source = free.get(), time.monotonic(), known.sources[mutant.path]
            try:
                found = finder(mutant, known, checkout, options.seconds)
            finally:
                free.put(checkout)
            where = f"{mutant.path}:{mutant.change.line} {mutant.change.kind}"
            took = f"{time.monotonic() - began:5.0f} s"
            _say(f"found    {took}  {where}  {found}" if found else f"SURVIVED {took}  {where}\n{mutant.diff(source)}")
            return found

        with ThreadPoolExecutor(options.processes) as pool:
            found = dict(zip(mutants, pool.map(tried, mutants), strict=True))
    _print(found, options.seed)


def _print(found: Mapping[Mutant, str | None], seed: int) -> None:
    tried = Counter(mutant.room for mutant in found)
    seen = Counter(mutant.room for mutant, finder in found.items() if finder is not None)
    for room in sorted(tried):
        _say(f"{room:16} {seen[room]:3} of {tried[room]:3} found")
    share = f"{seen.total() / tried.total():.0%}" if found else "none"
    _say(f"{'all':16} {seen.total():3} of {tried.total():3} found, {share}; seed {seed}")


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - what the command is for


if __name__ == "__main__":
    main()
