"""How often a controller's process looks for garbage."""

import gc
from typing import Final

_NEW_OBJECTS: Final = 200_000
"""So many new objects start a search for cycles.

With Python's own 700 it searches a thousand times while it reads a large cluster, whose objects all stay: a fifth of
the time of the first plan of `python -m bench.scale`.
"""


def collect_rarely() -> None:
    """Sets this for the process. Objects without cycles, nearly all, are freed at once in any case."""
    gc.set_threshold(_NEW_OBJECTS)
