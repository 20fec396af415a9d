"""A stage of the demo: one sandbox with its environment, driven by the commands that a user types."""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from demo.working_copy import make
from plimsoll.errors import PlimsollError
from plimsoll.sandbox import Sandbox

PROJECT = Path(__file__).resolve().parents[1]


class CommandFailedError(PlimsollError):
    """A command of the demo that did not end as it should."""


@dataclass(frozen=True)
class Stage:
    """Commands run in `project`, with `environ`; what they print goes to `log`."""

    sandbox: str
    project: Path
    environs: Mapping[str, Mapping[str, str]]
    """Environment variables of each user of the sandbox: admin, controller."""
    log: Path

    @classmethod
    def on(cls, sandbox: Sandbox, folder: Path) -> "Stage":
        """A working copy of the project in a folder, for a sandbox that is up; its log is `commands.log` there."""
        environs = {user: {**os.environ, **sandbox.environ(user)} for user in ("admin", "controller")}
        return cls(sandbox.name, make(folder / "project"), environs, folder / "commands.log")

    def run(self, *command: str, expect: int | None = 0, user: str = "admin") -> str:
        """Runs a command and returns what it printed.

        `expect` is the exit code that it must end with; None: any but 0. Raises CommandFailedError otherwise.
        """
        done = subprocess.run(
            command,
            cwd=self.project,
            env=dict(self.environs[user]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        with self.log.open("a") as log:
            log.write(f"\n$ {' '.join(command)}\n{done.stdout}\n[exit code {done.returncode}]\n")
        if (done.returncode == 0) if expect is None else (done.returncode != expect):
            raise CommandFailedError(
                f"`{' '.join(command)}` ended with exit code {done.returncode}:\n{done.stdout[-3000:]}",
                f"the whole log is in {self.log}",
            )
        return done.stdout

    def refused(self, *command: str, by: str) -> str:
        """Runs a command that must fail with `by` in what it prints, which it returns.

        Raises CommandFailedError if it ends with 0, or fails for another reason.
        """
        said = self.run(*command, expect=None)
        if by not in said:
            raise CommandFailedError(
                f"`{' '.join(command)}` failed, but not with {by!r}:\n{said[-3000:]}",
                f"the whole log is in {self.log}",
            )
        return said

    @contextmanager
    def controller(self) -> Iterator[None]:
        """`plimsoll run` beside the block, as the controller's account; stopped on leaving."""
        with self.log.open("a") as log:
            log.write("\n$ plimsoll run\n")
            log.flush()
            process = subprocess.Popen(
                ["plimsoll", "run"],
                env=dict(self.environs["controller"]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                yield
            finally:
                process.terminate()
                process.wait(timeout=60)

    def get(self, *arguments: str) -> dict[str, Any]:
        """`kubectl get ... -o json`."""
        parsed = orjson.loads(self.run("kubectl", "get", *arguments, "-o", "json"))
        assert isinstance(parsed, dict)
        return parsed

    def wait(self, what: str, done: Callable[[], bool], seconds: float = 180.0) -> None:
        """Awaits a condition of the cluster; raises CommandFailedError, naming it, where it does not come."""
        waiting = Retrying(
            stop=stop_after_delay(seconds), wait=wait_fixed(0.5), retry=retry_if_result(lambda met: not met)
        )
        try:
            waiting(done)
        except RetryError:
            raise CommandFailedError(f"{what}: not within {seconds:g} s", f"the whole log is in {self.log}") from None


def declare(stage: Stage, environment: str) -> str:
    """`pulumi up` of the foundation, then of the environment."""
    for stack in (f"{environment}-foundation", environment):
        stage.run("pulumi", "stack", "init", stack)
        stage.run("pulumi", "up", "--yes", "--skip-preview", "--stack", stack)
    return f"deployed the stacks {environment}-foundation and {environment}"


def conditions(workspace: Mapping[str, Any]) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message of each condition."""
    return {
        item["type"]: (item["status"], item.get("reason", ""), item.get("message", ""))
        for item in workspace.get("status", {}).get("conditions", ())
    }
