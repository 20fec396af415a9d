"""The project's stacks as users deploy them: the pulumi command in a working copy of the project."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from demo.working_copy import CHECKOUT, make
from plimsoll.sandbox import Sandbox

POLICIES = CHECKOUT / "policies"
_SECONDS = 240


def component_package(folder: Path) -> Path:
    """A copy of the component package below `folder`, because Pulumi's hosts write a cache of its schema next to it."""
    copied = folder / "components"
    shutil.copytree(CHECKOUT / "components", copied, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / ".venv").symlink_to(sys.prefix)
    return copied


class CommandFailedError(AssertionError):
    """A command failed, or succeeded where it should fail; contains its complete output."""


class PulumiFolder:
    """A folder with a Pulumi project, on one sandbox."""

    def __init__(self, sandbox: Sandbox, folder: Path, **environ: str) -> None:
        self.folder = folder
        self._environ = {**os.environ, **sandbox.environ(), **environ}

    def pulumi(self, *arguments: str, fails: bool = False) -> str:
        """Runs pulumi and returns its complete output. CommandFailedError if it fails, or does not fail although it
        should."""
        done = subprocess.run(
            ["pulumi", "--cwd", str(self.folder), "--non-interactive", "--color", "never", *arguments],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if (done.returncode != 0) != fails:
            raise CommandFailedError(f"pulumi {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def init(self, stack: str) -> None:
        self.pulumi("stack", "init", stack)

    def up(self, stack: str, *options: str, fails: bool = False) -> str:
        return self.pulumi("up", "--yes", "--stack", stack, *options, fails=fails)

    def apply(self, stack: str) -> str:
        """Creates a stack and deploys it."""
        self.init(stack)
        return self.up(stack, "--skip-preview")

    def preview(self, stack: str, *options: str, fails: bool = False) -> str:
        return self.pulumi("preview", "--stack", stack, *options, fails=fails)

    def set(self, stack: str, values: Mapping[str, str]) -> None:
        """Sets the configuration's values, by path."""
        given = (part for path, value in values.items() for part in ("--plaintext", f"{path}={value}"))
        self.pulumi("config", "set-all", "--stack", stack, "--path", *given)

    def destroy(self, stack: str, fails: bool = False) -> str:
        return self.pulumi("destroy", "--yes", "--skip-preview", "--stack", stack, fails=fails)

    def resources(self, stack: str) -> list[str]:
        """URNs in the stack's state."""
        exported = json.loads(self.pulumi("stack", "export", "--stack", stack))
        return [each["urn"] for each in exported["deployment"].get("resources") or ()]


class Project(PulumiFolder):
    """A working copy of this project on one sandbox."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        super().__init__(sandbox, make(folder))

    def declare(self, stack: str, **config: Any) -> None:
        """Writes the stack's file, which replaces a committed one of that name."""
        path = self.folder / "stacks" / f"Pulumi.{stack}.yaml"
        path.write_text(yaml.safe_dump({"config": {f"plimsoll:{key}": value for key, value in config.items()}}))
