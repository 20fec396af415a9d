"""The tool itself: which changes it makes, which tests it runs for them, and what it takes for found."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mutants.__main__ import Mutant, drawn, finder
from tests.mutants.changes import changes_of, makes_a_difference
from tests.mutants.checkout import Checkout
from tests.mutants.record import Record, record

CHANGED = {
    "def f(a, b):\n    return a and not b": [
        ("return nothing", "return None"),
        ("drop an operand", "return (not b)"),
        ("drop an operand", "return (a)"),
        ("negate", "return a and (b)"),
    ],
    "def f(a):\n    if a:\n        return 3": [
        ("drop the guard", "if False:"),
        ("negate", "if not (a):"),
        ("off by one", "return 4"),
    ],
    "def f(a, b):\n    return [c for c in a if c < b]": [
        ("empty", "return []"),
        ("drop the filter", "if True]"),
        ("swap the comparison", "if c <= b]"),
    ],
    "def f(a, b):\n    return a - b": [("swap the sign", "return a + b")],
    "def f(a):\n    return a not in ('b', 'c')": [
        ("return nothing", "return None"),
        ("swap the comparison", "return a in ('b', 'c')"),
        ("drop an element", "return a not in ('c', )"),
        ("drop an element", "return a not in ('b', )"),
    ],
    "A: Final = {1}": [("drop an element", "set()"), ("off by one", "{2}")],
    "A = {'b': [c], **d}": [
        ("drop an entry", "{**d}"),
        ("drop an entry", "{'b': [c]}"),
        ("drop an element", "[]"),
    ],
    "def f(a=False, *, b: 'list[int]'):\n    'Text.'\n    g(a, b=a)": [
        ("flip", "a=True"),
        ("drop an argument", "g(a, )"),
    ],
    "@dataclass(frozen=True)\nclass A:\n    b: int = 1\n\n\n__all__ = ['A']": [("off by one", "b: int = 2")],
    "if TYPE_CHECKING:\n    import a\nx = 'é' + str(1)": [("off by one", "str(2)")],
    "def f(a):\n    return f'{a + 1}' + a": [],
    "def f(a):\n    log.info('done', number=a + 1)\n    OUT.print(a, style='red')": [],
}


@pytest.mark.parametrize("source", CHANGED)
def test_changes(source: str) -> None:
    changes = [change for change in changes_of(source) if makes_a_difference(change, source)]
    assert sorted(change.kind for change in changes) == sorted(kind for kind, _ in CHANGED[source])
    for kind, text in CHANGED[source]:
        assert any(change.kind == kind and text in change.made(source) for change in changes), (kind, text)


def test_each_change_of_a_module_can_be_made_alone() -> None:
    source = Path(__file__).with_name("record.py").read_text()
    made = {change.made(source) for change in changes_of(source) if makes_a_difference(change, source)}
    assert len(made) > 100
    assert source not in made


def test_a_seed_draws_the_same_again() -> None:
    sources = {f"plimsoll/{name}.py": "".join(f"a{n} = {n}\n" for n in range(50)) for name in ("a", "b")}
    assert drawn(sources, 10, seed=1) == drawn(dict(reversed(sources.items())), 10, seed=1)
    assert drawn(sources, 10, seed=1) != drawn(sources, 10, seed=2)
    assert len(drawn(sources, 1000, seed=1)) == 100


ROOM = """
from functools import cache

LIMIT = 3
SPARE = 1

def fits(number):
    return number <= LIMIT

def unread(number):
    return number + SPARE

@cache
def kept():
    return 2 + 2

def counted(number):
    while number > 0:
        number -= 1
    return number
"""
TESTS = """
from plimsoll.room import counted, fits, kept, unread

def test_fits():
    assert fits(3)
    assert not fits(4)

def test_runs_and_asserts_nothing():
    unread(1)

def test_counts():
    assert counted(3) == 0

def test_keeps():
    assert kept() == 4

def test_keeps_again():
    assert kept() == 4

def test_fails_anyway():
    assert unread(1) == 3
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    original = tmp_path_factory.mktemp("original")
    files = {
        "plimsoll/__init__.py": "",
        "plimsoll/room/__init__.py": ROOM,
        "tests/test_room.py": TESTS,
        "tests/__init__.py": "",
        "pyproject.toml": "[tool.pytest.ini_options]",
    }
    for name, text in files.items():
        (original / name).parent.mkdir(parents=True, exist_ok=True)
        (original / name).write_text(text)
    shutil.copytree(
        Path(__file__).parent, original / "tests" / "mutants", ignore=shutil.ignore_patterns("test_*", "__pycache__")
    )
    subprocess.run(["git", "init", "--quiet", original], check=True)
    return Checkout(original, tmp_path_factory.mktemp("copies") / "copy")


@pytest.fixture(scope="module")
def recorded(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Record:
    return record(checkout, tmp_path_factory.mktemp("kept") / "record.json", 1, print)


def _mutant(where: Callable[[str], bool]) -> Mutant:
    return next(Mutant("plimsoll/room/__init__.py", change) for change in changes_of(ROOM) if where(change.made(ROOM)))


def test_tests_are_chosen_that_run_the_function_or_use_the_constant(recorded: Record) -> None:
    def names(text: str) -> list[str]:
        mutant = _mutant(lambda made: text in made)
        return [test.name.split("::")[1] for tests in recorded.that_see(mutant.path, mutant.change) for test in tests]

    assert names("number < LIMIT") == ["test_fits"]
    assert sorted(names("2 - 2")) == ["test_keeps", "test_keeps_again"]
    assert names("LIMIT = 4") == ["test_fits"]
    assert names("SPARE = 2") == ["test_runs_and_asserts_nothing"]  # the other one fails without any change


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("number < LIMIT", "test_fits"),
        ("LIMIT = 4", "test_fits"),
        ("number - SPARE", None),
        ("number > 1", "test_counts"),
    ],
)
def test_found_and_survived(checkout: Checkout, recorded: Record, text: str, test: str | None) -> None:
    found = finder(_mutant(lambda made: text in made), recorded, checkout, 60)
    assert found == (f"FAILED tests/test_room.py::{test}" if test else None)
    assert (checkout.folder / "plimsoll" / "room" / "__init__.py").read_text() == ROOM


def test_an_endless_loop_is_ended(checkout: Checkout) -> None:
    endless = ROOM.replace("number -= 1", "number += 1")
    with checkout.changed("plimsoll/room/__init__.py", endless), pytest.raises(subprocess.TimeoutExpired):
        checkout.pytest(["tests/test_room.py"], seconds=5)
