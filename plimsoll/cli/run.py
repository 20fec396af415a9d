"""`plimsoll run`: the controller, or one run for a job."""

import signal
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import structlog
import typer

from plimsoll.cli.shared import (
    ERR,
    REFUSED,
    SETTLED,
    Backend,
    Context,
    EnvironmentName,
    Format,
    Kubeconfig,
    Output,
    PassphraseFile,
    Provider,
    WorkFolder,
    log_to_stderr,
)
from plimsoll.errors import PlimsollError

if TYPE_CHECKING:
    from plimsoll.apply import Applier
    from plimsoll.cli.writing import Writer
    from plimsoll.loop import Loop

log = structlog.get_logger(__name__)
app = typer.Typer(add_completion=False)


@app.command()
def run(  # noqa: PLR0917 - options of a command, each given by name
    once: Annotated[bool, typer.Option("--once", help="exit when nothing is left to do, for a job")] = False,
    timeout: Annotated[
        float, typer.Option(help="seconds that --once may take, including the provisioning of nodes")
    ] = 900.0,
    environment: EnvironmentName = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    backend: Backend = "",
    passphrase_file: PassphraseFile = None,
    provider: Provider = "plugin",
    shards: Annotated[int, typer.Option(help="number of capacity stacks for new Workspaces")] = 4,
    pre_started: Annotated[int, typer.Option(help="number of pre-started updates; about 110 MB each")] = 1,
    work_folder: WorkFolder = None,
    metrics_port: Annotated[
        int | None, typer.Option(envvar="PLIMSOLL_METRICS_PORT", help="serve metrics for Prometheus on this port")
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(envvar="PLIMSOLL_METRICS_HOST", help="address for metrics; 0.0.0.0 in a pod")
    ] = "127.0.0.1",
    output: Output = Format.TEXT,
) -> None:
    """Run the controller until it is stopped, or one run for a job.

    With --once: exit code 0: settled; 2: a Workspace or an object is refused; 1: failed, or not settled in time.
    """
    from plimsoll.cli.plan import render
    from plimsoll.cli.writing import Settling, WriterOptions, open_writer, serving_metrics
    from plimsoll.loop import LOOK_AGAIN_SECONDS, Loop

    log_to_stderr()
    options = WriterOptions(
        environment,
        kubeconfig,
        context,
        backend,
        passphrase_file,
        provider,
        shards,
        0 if once else pre_started,
        work_folder,
    )
    with serving_metrics(metrics_host, metrics_port) as on_tick, open_writer(options) as writer:
        loop = Loop(writer.observer, writer.applier, writer.reporter)
        _stop_on_signal(loop, writer.applier)
        _take_lease(writer, timeout if once else None)
        if not once:
            loop.run(on_tick)
            raise typer.Exit(SETTLED)
        settling = Settling(timeout)
        with ERR.status("settling"):
            loop.run(
                lambda tick: on_tick(tick) and settling.on_tick(tick),
                patient=False,
                look_again=min(timeout, LOOK_AGAIN_SECONDS),
            )
        plan = settling.whole_plan()
        if plan is not None:
            render(plan, output)
        if settling.unsettled:
            raise PlimsollError(settling.unsettled, "run it again, or see `plimsoll status`")
        raise typer.Exit(REFUSED if plan is not None and (plan.refusals or plan.withheld) else SETTLED)


def _take_lease(writer: "Writer", wait_seconds: float | None) -> None:
    """Acquires the Lease of the environment; logs if another process has it."""
    from plimsoll.apply import LeaseHeldError

    try:
        writer.applier.start()
    except LeaseHeldError as error:
        log.warning("waiting for the Lease", environment=writer.environment, holder=error.message)
        writer.applier.start(wait_seconds)
    log.info("at work", environment=writer.environment, identity=writer.applier.identity)


def _stop_on_signal(loop: "Loop", applier: "Applier") -> None:
    def stop(_number: int, _frame: FrameType | None) -> None:
        loop.stop()
        applier.interrupt()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
