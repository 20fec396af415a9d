"""The package as it is installed: its name on package indexes, its version, and the extras that it lacks."""

from importlib import metadata
from typing import Final

from plimsoll.errors import PlimsollError

NAME: Final = "plimsoll-gpu"
"""The project `plimsoll` on PyPI is another one."""
_EXTRAS: Final = {
    "boto3": ("aws",),
    "botocore": ("aws",),
    "cryptography": ("sandbox",),
    "psutil": ("controller", "sandbox"),
    "starlette": ("ui",),
    "uvicorn": ("controller", "ui"),
}
"""The extras that bring a module, by its name: those of pyproject.toml."""


def version() -> str:
    """The version of this package, as installed."""
    return metadata.version(NAME)


def missing_extra(error: ImportError) -> PlimsollError | None:
    """What a user reads where a module is not installed that an extra brings; None for any other module."""
    module = (error.name or "").partition(".")[0]
    extras = _EXTRAS.get(module)
    if extras is None:
        return None
    named = " or ".join(f"{NAME}[{extra}]" for extra in extras)
    return PlimsollError(f"this needs the package {module}, which is not installed", f"install {named}")
