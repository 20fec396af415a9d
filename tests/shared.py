"""Data of others that the project does not contain: KAITO's definitions, and the trace of a production cluster.

It is in the folder that PLIMSOLL_SHARED names, else in `shared` beside the checkout. Tests that need it are skipped
where it is not there.
"""

import os
from pathlib import Path

import pytest

from tests.pages import CHECKOUT


def shared(path: str) -> Path:
    """The file or folder with this path below the folder. Skips the test, or the module that is being collected, if it
    is not there."""
    found = Path(os.environ.get("PLIMSOLL_SHARED") or CHECKOUT.parent / "shared") / path
    if not found.exists():
        pytest.skip(f"{found} is not there: PLIMSOLL_SHARED names the folder", allow_module_level=True)
    return found
