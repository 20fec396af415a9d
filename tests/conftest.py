"""Profiles of the property tests, the number of processes of a test run, their event loop and their searches for
garbage."""

import asyncio
import gc
import os

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers

from plimsoll.garbage import collect_rarely

_GIB = 1024**3
_MEMORY_PER_PROCESS_GIB = 4
"""A process of tests and the sandboxes that it has up at once."""
_TIMED = [HealthCheck.too_slow]
"""Fails a test for how busy the machine is."""

# The same examples in every run: those of a user are those of CI.
# They find nothing new, so they are few.
settings.register_profile(
    "fixed", max_examples=25, derandomize=True, database=None, deadline=None, suppress_health_check=_TIMED
)
# New ones, and many: `make fuzz`.
settings.register_profile(
    "fuzz",
    max_examples=int(os.environ.get("EXAMPLES") or 20_000),
    deadline=None,
    print_blob=True,
    suppress_health_check=_TIMED,
)
settings.load_profile("fixed")

# Pulumi's mocks take that of the thread, and from 3.14 on Python makes none.
asyncio.set_event_loop(asyncio.new_event_loop())

# As in a controller: what is imported and collected stays.
collect_rarely()


def pytest_configure(config: pytest.Config) -> None:
    if settings.get_current_profile_name() == "fixed":
        # Hypothesis also takes constants of the modules that are loaded just then, which depends on the tests that a
        # process has run before.
        providers._get_local_constants = lambda: providers._local_constants


def pytest_xdist_auto_num_workers() -> int:
    """Processes for `--numprocesses auto`, as far as the memory allows: one for each core, and one more, because tests
    wait for sandboxes, browsers and other programs."""
    from plimsoll.sandbox.parts import available_memory  # no other process of a run needs it so early

    wanted = (os.cpu_count() or 1) + 1
    return max(1, min(wanted, available_memory() // (_MEMORY_PER_PROCESS_GIB * _GIB)))


def pytest_collection_finish() -> None:
    # Each search for garbage by a test, or at the end, would look at all that is imported and collected.
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    default = settings.default
    if settings.get_current_profile_name() != "fuzz" or default is None:
        return
    for item in items:
        if not (isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)):
            continue
        # Instead of the number that the test, or the class that a state machine becomes, names for every other run.
        holder, name = item.obj, "_hypothesis_internal_use_settings"
        if not hasattr(holder, name):
            holder, name = item.cls, "settings"
        named = getattr(holder, name)
        setattr(holder, name, settings(named, max_examples=default.max_examples, derandomize=False))
