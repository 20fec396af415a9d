"""Counts calls: a measure of cost that does not depend on the machine."""

import sys
from collections import Counter
from collections.abc import Callable


def calls(run: Callable[[], object]) -> int:
    """How many functions of Python it calls."""
    found = Counter[str]()
    before = sys.getprofile()
    sys.setprofile(lambda _frame, event, _argument: found.update([event]))
    try:
        run()
    finally:
        sys.setprofile(before)
    return found["call"]
