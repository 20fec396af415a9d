"""Starts the processes of a sandbox in order, and waits until each is ready."""

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

from tenacity import AsyncRetrying, stop_after_attempt, wait_fixed

from plimsoll.errors import PlimsollError
from plimsoll.sandbox import identities
from plimsoll.sandbox.certificates import AUTHORITY, CERTIFICATE, refusal, trusting
from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.parts import part
from plimsoll.sandbox.processes import control_plane, controllers, kai
from plimsoll.sandbox.processes.child import Child
from plimsoll.sandbox.processes.controllers import Controller
from plimsoll.sandbox.processes.ports import hold_port, port_of
from plimsoll.sandbox.processes.process import Process, environment
from plimsoll.sandbox.state import Settings

READY_SECONDS: Final = 120
_POLL_SECONDS: Final = 0.05
_TRIES: Final = 10
_KAI_CRDS: Final = (
    "scheduling.run.ai_queues",
    "scheduling.run.ai_podgroups",
    "scheduling.run.ai_bindrequests",
    "kai.scheduler_topologies",
)


class Startup:
    """Starts all processes once. `children` grows meanwhile; the caller stops them.

    `on_event` is called with `starting` or `ready`, and the name of the process.
    """

    def __init__(self, folder: Folder, settings: Settings, on_event: Callable[[str, str], None]) -> None:
        self.children: list[Child] = []
        self.ports: dict[str, int] = {}
        self._held: list[socket.socket] = []
        """Keeps the ports reserved while the sandbox runs, so that the port of a late process is free."""
        self._folder, self._settings, self._on_event = folder, settings, on_event
        self._tls = trusting(folder.certificates)

    async def run(self) -> None:
        """Starts everything. Raises PlimsollError if a process ends or is not ready in time, OSError if a file cannot
        be written."""
        folder, settings = self._folder, self._settings
        wanted = [*control_plane.PORTS, *(name for each in controllers.wanted(settings) for name in each.ports)]
        wanted += kai.ports() if settings.kai else ()
        for name in wanted:
            held = hold_port((settings.port or 0) if name == "kube-apiserver" else 0)
            self._held.append(held)
            self.ports[name] = port_of(held)
        identities.write_kubeconfigs(folder, self.ports["kube-apiserver"], kai=settings.kai)
        await self._start(control_plane.etcd(folder, self.ports))
        await self._start(control_plane.kube_apiserver(folder, self.ports, settings))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._install_objects(group))
                for process in control_plane.after_apiserver(folder, self.ports):
                    group.create_task(self._start(process))
        except* (PlimsollError, OSError) as failures:
            # The first error is the cause; the task group cancelled the others.
            raise failures.exceptions[0] from None

    async def _install_objects(self, group: asyncio.TaskGroup) -> None:
        crds = [part("kai").cached / "crds" / f"{name}.yaml" for name in _KAI_CRDS]
        crds += [each.crds for each in controllers.wanted(self._settings)]
        if self._settings.karpenter:
            crds += [part("karpenter").cached / "crds"]
        sources = [*crds, control_plane.resource("objects.yaml")]
        self._on_event("starting", "custom resources")
        await self._kubectl("apply", "--server-side", "--recursive", *(f"--filename={s}" for s in sources))
        # A new definition has null as conditions for a moment, which is an error to `kubectl wait`.
        async for attempt in AsyncRetrying(stop=stop_after_attempt(_TRIES), wait=wait_fixed(0.3), reraise=True):
            with attempt:
                established = ("--all", "--for=condition=Established", f"--timeout={READY_SECONDS}s")
                await self._kubectl("wait", "crd", *established)
        self._on_event("ready", "custom resources")
        for controller in controllers.wanted(self._settings):
            group.create_task(self._start_controller(controller))
        if self._settings.karpenter:
            group.create_task(self._start_karpenter())
        if self._settings.kai:
            await self._start_kai()

    async def _start_karpenter(self) -> None:
        await self._kubectl("apply", "--server-side", f"--filename={control_plane.resource('karpenter.yaml')}")
        await self._start(control_plane.karpenter(self._folder, self.ports))

    async def _start_controller(self, controller: Controller) -> None:
        """Starts the controller, then installs the webhooks of its module."""
        await self._start(controller.process(self._folder, self.ports))
        webhooks = controller.write_webhooks(self._folder, self.ports)
        await self._kubectl("apply", "--server-side", f"--filename={webhooks}")

    async def _start_kai(self) -> None:
        """Starts the programs of KAI, then installs their webhooks."""
        sources = kai.write_objects(self._folder)
        await self._kubectl("apply", "--server-side", "--recursive", *(f"--filename={s}" for s in sources))
        await asyncio.gather(*(self._start(each) for each in kai.processes(self._folder, self.ports)))
        await self._kubectl("apply", "--server-side", f"--filename={kai.write_webhooks(self._folder, self.ports)}")

    async def _kubectl(self, *arguments: str) -> None:
        command = (
            str(self._folder.bin() / "kubectl"),
            f"--kubeconfig={self._folder.kubeconfig('admin')}",
            f"--cache-dir={self._folder.path / 'kube-cache'}",
            *arguments,
        )
        child = Child("kubectl", command, environment({}), self._folder.logs / "kubectl.log")
        # A child as the others, so that an interrupted start ends it too.
        self.children.append(child)
        code = await child.wait()
        self.children.remove(child)
        if code != 0:
            raise PlimsollError(f"kubectl {arguments[0]} ended with {code}:\n{child.log_tail()}")

    async def _start(self, process: Process) -> None:
        whole = environment(process.environment)
        child = Child(process.name, process.command, whole, self._folder.logs / f"{process.name}.log")
        self.children.append(child)
        if process.port is not None:
            self.ports[process.name] = process.port
        self._on_event("starting", process.name)
        deadline = time.monotonic() + READY_SECONDS
        ended = asyncio.ensure_future(child.wait())
        try:
            while not await self._ready(process, last=time.monotonic() > deadline):
                await asyncio.wait({ended}, timeout=_POLL_SECONDS)
                if child.exit_code is not None:
                    raise self._failure(child)
                if time.monotonic() > deadline:
                    raise PlimsollError(
                        f"{process.name} is not ready after {READY_SECONDS} s:\n{child.log_tail()}",
                        "The machine may be too busy: run this again, or stop other programs.",
                    )
        finally:
            ended.cancel()
        self._on_event("ready", process.name)

    async def _ready(self, process: Process, *, last: bool) -> bool:
        """Whether it is ready. Raises PlimsollError if its certificate is refused, or at the last look, if it does not
        speak TLS as this process does: while it starts, it may break off handshakes."""
        try:
            return process.ready_url is None or await self._answers(process.ready_url)
        except ssl.SSLError as error:
            if last or isinstance(error, ssl.SSLCertVerificationError):
                pair = f"{self._folder.certificates / CERTIFICATE}, signed by {AUTHORITY} beside it"
                raise refusal(error, f"{process.name} ({pair})") from None
            return False

    async def _answers(self, url: str) -> bool:
        """Whether a GET of that loopback address returns 200. Raises ssl.SSLError. Written by hand, because an HTTP
        library would start threads, see Child."""
        address = urlsplit(url)
        tls = self._tls if address.scheme == "https" else None
        try:
            async with asyncio.timeout(5):
                reader, writer = await asyncio.open_connection(address.hostname, address.port, ssl=tls)
                try:
                    writer.write(f"GET {address.path} HTTP/1.0\r\nHost: {address.hostname}\r\n\r\n".encode())
                    status = await reader.readline()
                finally:
                    writer.close()
        except ssl.SSLError:
            raise
        except (OSError, TimeoutError):
            return False
        return b" 200 " in status

    def _failure(self, child: Child) -> PlimsollError:
        words = child.log_tail()
        hint = None
        if "no space left on device" in words:
            hint = "Free disk space, or set PLIMSOLL_HOME to another folder."
        return PlimsollError(f"{child.name} ended with {child.exit_code} while starting:\n{words}", hint)


def in_stopping_order(children: Sequence[Child]) -> list[list[Child]]:
    """Groups of processes to stop together: first the clients of the apiserver, then the apiserver, then etcd."""
    last = ("kube-apiserver", "etcd")
    return [
        [c for c in children if c.name not in last],
        *([c for c in children if c.name == name] for name in last),
    ]
