"""The programs of a sandbox: pinned as Go modules, and found on PATH or in the cache, or built."""

from plimsoll.sandbox.parts.building import build_part
from plimsoll.sandbox.parts.go_commands import GoCommands, Stopped, log_of
from plimsoll.sandbox.parts.installing import Found, Installation, find_programs, missing_programs
from plimsoll.sandbox.parts.pinned import PARTS, Part, Program, part, part_names
from plimsoll.sandbox.parts.toolchain import available_memory, builds_at_once

__all__ = [
    "PARTS",
    "Found",
    "GoCommands",
    "Installation",
    "Part",
    "Program",
    "Stopped",
    "available_memory",
    "build_part",
    "builds_at_once",
    "find_programs",
    "log_of",
    "missing_programs",
    "part",
    "part_names",
]
