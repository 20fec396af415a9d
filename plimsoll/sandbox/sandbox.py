"""Sandbox: starts and stops a sandbox by its name, and gives access to it."""

import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psutil

from plimsoll import home
from plimsoll.errors import PlimsollError
from plimsoll.sandbox import identities, programs, shell, state
from plimsoll.sandbox.certificates import write_certificates
from plimsoll.sandbox.folder import Folder, folders
from plimsoll.sandbox.nodes import instance_types
from plimsoll.sandbox.parts import Found, find_programs, part_names
from plimsoll.sandbox.processes import DETACH
from plimsoll.sandbox.state import Settings, State

DEFAULT_NAME: Final = "default"
_DOWN_SECONDS: Final = 40
"""Longer than the supervisor takes to stop its three groups of processes."""
_POLL_SECONDS: Final = 0.05
_CLOCK_SECONDS: Final = 2
"""Maximum difference of a process's start time between two readings, if the clock is set."""

Event = dict[str, Any]


class Sandbox:
    """One sandbox. Creating the object starts nothing."""

    def __init__(self, folder: Folder) -> None:
        self.folder: Final = folder

    @classmethod
    def named(cls, name: str = DEFAULT_NAME) -> "Sandbox":
        """The sandbox of that name, running or not. Raises PlimsollError for an invalid name."""
        return cls(Folder(name))

    @classmethod
    def all(cls) -> "list[Sandbox]":
        """The sandboxes that have a folder below PLIMSOLL_HOME, running or not, by name."""
        return [cls(folder) for folder in folders()]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the user `admin`, who has all permissions."""
        return self.folder.kubeconfig("admin")

    @property
    def controller_kubeconfig(self) -> Path:
        """Kubeconfig of the controller's service account, which has the permissions of the foundation stack."""
        return self.folder.kubeconfig("controller")

    def is_up(self) -> bool:
        """Whether it has started completely and its supervisor runs."""
        return self.folder.supervised() and (found := self.state()) is not None and found.ready

    def state(self) -> State | None:
        """Its processes, as last recorded by the supervisor; None if there is no such sandbox."""
        return state.read(self.folder.state, State)

    def settings(self) -> Settings | None:
        """The settings with which it was started; None if there is no such sandbox."""
        return state.read(self.folder.settings, Settings)

    def environ(self, user: str = "admin") -> dict[str, str]:
        """Environment variables with which kubectl, pulumi and plimsoll use this sandbox as `user`.

        Raises PlimsollError if it is not running.
        """
        self._running()
        return shell.environ(self.folder, user)

    def up(
        self,
        *,
        karpenter: bool = True,
        trainer: bool = False,
        kai: bool = False,
        lws: bool = True,
        audit: bool = False,
        port: int | None = None,
        stop_with_caller: bool = False,
        on_event: Callable[[Event], None] = lambda _: None,
    ) -> bool:
        """Starts the sandbox, and returns when everything is ready; False if it was running already, or another `up`
        has started it meanwhile.

        The folder of a sandbox that ended unexpectedly is reused with its data. With `stop_with_caller`, the sandbox
        stops and its folder is removed when this process ends for any reason. `on_event` is called with the
        supervisor's events: `event` (starting, ready, up) and `name`. With `audit`, the apiserver writes
        `Folder.audit_log`. Raises PlimsollError, after which nothing is left running.
        """
        if sys.platform != "linux":
            raise PlimsollError("The sandbox runs on Linux only.", "Use a Linux machine, a virtual machine or WSL.")
        wanted = Settings(karpenter=karpenter, trainer=trainer, kai=kai, lws=lws, audit=audit, port=port)
        found = find_programs(part_names(karpenter=karpenter, trainer=trainer, kai=kai, lws=lws))
        lacking = sorted({f.part.name for f in found if f.path is None})
        if lacking:
            install = "plimsoll sandbox install" + " --trainer" * trainer + " --kai" * kai
            raise PlimsollError(f"Not installed: {', '.join(lacking)}.", f"Run `{install}` first.")
        if self.is_up():
            return self._stays_up(wanted)
        while True:
            self.folder.create()
            # Another `up` holds the lock until its sandbox is up, or nothing is left of it.
            with self.folder.locked():
                if self.is_up():
                    return self._stays_up(wanted)
                self._await_supervisor()  # of an `up` that was killed, after which it stops everything
                if not self.folder.path.exists():
                    continue
                self._clear_leftovers()
                fresh = state.read(self.folder.settings, Settings) is None
                with self.folder.explained():
                    self._prepare(wanted, found, fresh=fresh)
                self._supervise(stop_with_caller=stop_with_caller, fresh=fresh, on_event=on_event)
                return True

    def down(self) -> bool:
        """Stops every process and removes the folder; False if there was no such sandbox."""
        if not self.folder.path.exists():
            return False
        try:
            with self.folder.locked():
                self._stop_supervisor()
                self._clear_leftovers()
                if self.folder.path.exists():
                    self.folder.remove()
        except FileNotFoundError:
            return False
        return True

    def _running(self) -> tuple[Settings, State]:
        settings, found = self.settings(), self.state()
        if settings is None or found is None or not self.is_up():
            raise PlimsollError(
                f"The sandbox {self.name} is not running.", f"Run `plimsoll sandbox up --name {self.name}` first."
            )
        return settings, found

    def _stays_up(self, wanted: Settings) -> bool:
        has, found = self._running()
        hint = f"Run `plimsoll sandbox down --name {self.name}` first, or choose another --name."
        if has.model_copy(update={"port": wanted.port}) != wanted:
            raise PlimsollError(
                f"The sandbox {self.name} runs with karpenter={has.karpenter}, trainer={has.trainer}, kai={has.kai}, "
                f"lws={has.lws} and audit={has.audit}.",
                hint,
            )
        port = found.port_of("kube-apiserver")
        if wanted.port not in (None, port):
            raise PlimsollError(f"The apiserver of the sandbox {self.name} runs on port {port}.", hint)
        return False

    def _prepare(self, settings: Settings, found: list[Found], *, fresh: bool) -> None:
        folder = self.folder
        # Whatever an earlier release wrote, or is about to expire. Kubeconfigs name the files.
        write_certificates(folder.certificates)
        identities.write_tokens(folder)
        if fresh:
            folder.pulumi.mkdir(parents=True, exist_ok=True)
            # A file in place of the folder for Pulumi's own logs: each command would write every step with all
            # properties there, compressed and encrypted, for a third of its CPU time when it deploys the foundation.
            (folder.pulumi / "logs").touch()
            folder.stacks.mkdir(exist_ok=True)
            identities.write_secret(folder.passphrase, identities.random_secret())
        (folder.path / "instance_types.json").write_text(json.dumps(instance_types()))
        programs.link(folder, found)
        folder.state.unlink(missing_ok=True)
        state.write(folder.settings, settings)

    def _supervise(self, *, stop_with_caller: bool, fresh: bool, on_event: Callable[[Event], None]) -> None:
        ours, theirs = socket.socketpair()
        caller = "with-caller" if stop_with_caller else "detached"
        arguments = [self.name, str(theirs.fileno()), caller, "fresh" if fresh else "recovered"]
        with (
            (self.folder.logs / "supervisor.log").open("ab") as log,
            self.folder.supervisor_lock.open("w") as lock,
        ):
            # The supervisor inherits the lock, so that it holds it from its first moment to its last.
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = subprocess.Popen(
                [sys.executable, "-m", "plimsoll.sandbox", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=os.environ | {"PLIMSOLL_HOME": str(home.state())},  # which may be relative to the folder of `up`
                pass_fds=[theirs.fileno(), lock.fileno()],
                start_new_session=True,
            )
        theirs.close()
        try:
            self._await_up(ours, on_event)
        except BaseException:
            # Closing the channel makes the supervisor stop everything. Wait for it, so that nothing is left.
            ours.close()
            process.wait()
            raise
        if stop_with_caller:
            _stop_with_caller[self.name] = (ours, process)
        else:
            ours.sendall(DETACH)
            ours.close()

    def _await_up(self, channel: socket.socket, on_event: Callable[[Event], None]) -> None:
        with channel.makefile("rb") as lines:
            for line in lines:
                event: Event = json.loads(line)
                if event["event"] == "failed":
                    raise PlimsollError(event["message"], event["hint"])
                on_event(event)
                if event["event"] == "up":
                    return
        raise PlimsollError(
            f"The supervisor of the sandbox {self.name} ended while starting.",
            f"Its log may say why: {self.folder.logs / 'supervisor.log'}",
        )

    def _recorded(self) -> State | None:
        """As `state`, but None for a damaged file, which must not keep the sandbox from being removed."""
        with suppress(PlimsollError):
            return self.state()
        return None

    def _stop_supervisor(self) -> None:
        if not self.folder.supervised():
            return
        found = self._recorded()
        if found is None:
            self._await_supervisor()  # its `up` was killed before the first process started
            return
        try:
            handle = os.pidfd_open(found.supervisor)
        except ProcessLookupError:
            return
        try:
            signal.pidfd_send_signal(handle, signal.SIGTERM)
            if not select.select([handle], [], [], _DOWN_SECONDS)[0]:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                select.select([handle], [], [], _DOWN_SECONDS)
        finally:
            os.close(handle)
        channel, process = _stop_with_caller.pop(self.name, (None, None))
        if channel is not None and process is not None:
            channel.close()
            process.wait()

    def _await_supervisor(self) -> None:
        """Waits until no supervisor runs."""
        deadline = time.monotonic() + _DOWN_SECONDS
        while self.folder.supervised():
            if time.monotonic() > deadline:
                raise PlimsollError(
                    f"The supervisor of the sandbox {self.name} has not ended after {_DOWN_SECONDS} s.",
                    f"End the process `python -m plimsoll.sandbox {self.name}`, and run this again.",
                )
            time.sleep(_POLL_SECONDS)

    def _clear_leftovers(self) -> None:
        """Ends processes that a killed supervisor left, by id and start time."""
        found = self._recorded()
        left = []
        for noted in found.processes if found else []:
            try:
                process = psutil.Process(noted.pid)
                if abs(process.create_time() - noted.created) < _CLOCK_SECONDS:
                    process.kill()
                    left.append(process)
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(left, timeout=10)


_stop_with_caller: Final[dict[str, tuple[socket.socket, "subprocess.Popen[bytes]"]]] = {}
"""Channels of the sandboxes that stop when this process ends."""
