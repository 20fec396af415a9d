"""`plimsoll run`: the controller, or one run for a job."""

from collections.abc import Callable
from typing import Annotated, Final

import typer

from plimsoll.cli.shared import (
    ERR,
    FAILED,
    REFUSED,
    SETTLED,
    Backend,
    Context,
    EnvironmentName,
    Format,
    Kubeconfig,
    LeaseDuration,
    LeaseRenewDeadline,
    LeaseRetryPeriod,
    Output,
    PassphraseFile,
    PolicyPacks,
    SecretsProvider,
    WatchSilence,
    WorkFolder,
    only_with,
    only_without,
)
from plimsoll.errors import PlimsollError
from plimsoll.garbage import collect_rarely
from plimsoll.logs import log_to_stderr

HUB_TIMEOUT_SECONDS: Final = 2.0
"""How long a round waits for what a hub says of models that were not named before; a job waits for its deadline."""

app = typer.Typer(add_completion=False)


@app.command()
def run(  # noqa: PLR0917 - options of a command, each given by name
    ctx: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="exit when nothing is left to do, for a job")] = False,
    timeout: Annotated[
        float, typer.Option(min=1, help="seconds that --once may take, including the provisioning of nodes")
    ] = 900.0,
    environment: EnvironmentName = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    backend: Backend = "",
    passphrase_file: PassphraseFile = None,
    secrets_provider: SecretsProvider = "passphrase",
    policy_packs: PolicyPacks = None,
    shards: Annotated[
        int,
        typer.Option(
            envvar="PLIMSOLL_SHARDS", help="number of capacity stacks among which new objects are distributed"
        ),
    ] = 4,
    pre_started: Annotated[
        int, typer.Option(envvar="PLIMSOLL_PRE_STARTED", help="number of pre-started updates; about 220 MB each")
    ] = 1,
    work_folder: WorkFolder = None,
    lease_duration: LeaseDuration = 15.0,
    lease_renew_deadline: LeaseRenewDeadline = 10.0,
    lease_retry_period: LeaseRetryPeriod = 5.0,
    watch_silence: WatchSilence = 150.0,
    metrics_port: Annotated[
        int | None,
        typer.Option(envvar="PLIMSOLL_METRICS_PORT", help="serve /metrics on this port"),
    ] = None,
    health_probe_port: Annotated[
        int | None,
        typer.Option(envvar="PLIMSOLL_HEALTH_PROBE_PORT", help="serve /healthz and /readyz on this port"),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(envvar="PLIMSOLL_METRICS_HOST", help="address for both ports; 0.0.0.0 in a pod")
    ] = "127.0.0.1",
    output: Output = Format.TEXT,
) -> None:
    """Run the controller until it is stopped, or once for a job.

    It waits for the cluster's Environment, and for the Lease where another controller has it. With --once: exit code
    0: settled; 2: a Workspace or an object is refused; 1: failed, or not settled in time.
    """
    from plimsoll.cli.controller import Controller, Stopping, retry_transient, serving
    from plimsoll.cli.tables.plan import render
    from plimsoll.cli.writing import Settling, WriterOptions, check_options
    from plimsoll.loop import RESYNC_SECONDS
    from plimsoll.observe.cluster import open_observer

    only_with(ctx, "once", "timeout", "output")
    only_without(ctx, "once", "pre_started")
    if health_probe_port is None:
        only_with(ctx, "metrics_port", "metrics_host")
    log_to_stderr()
    collect_rarely()
    options = WriterOptions(
        environment=environment,
        kubeconfig=kubeconfig,
        context=context,
        backend=backend,
        passphrase_file=passphrase_file,
        secrets_provider=secrets_provider,
        policy_packs=tuple(policy_packs or ()),
        shards=shards,
        pre_started=0 if once else pre_started,
        work_folder=work_folder,
        lease={
            "duration": lease_duration,
            "renew_deadline": lease_renew_deadline,
            "retry_period": lease_retry_period,
        },
    )
    check_options(options)
    stopping = Stopping(FAILED if once else SETTLED)
    stopping.on_signals()
    hub_timeout = None if once else HUB_TIMEOUT_SECONDS
    with serving(metrics_host, metrics_port, health_probe_port) as service:

        def awaited(sync: Callable[[], None]) -> None:
            sync() if once else retry_transient(sync, stopping, service.waits)

        with open_observer(kubeconfig, context, hub_timeout, awaited, watch_silence) as (connection, observer):
            controller = Controller(options, connection, observer, service, stopping)
            if not once:
                controller.run()
                raise typer.Exit(SETTLED)
            settling = Settling(timeout)
            with ERR.status("settling"):
                controller.run_once(timeout, settling.on_round, min(timeout, RESYNC_SECONDS))
        plan = settling.whole_plan()
        if plan is not None:
            render(plan, output)
        if settling.unsettled:
            raise PlimsollError(settling.unsettled, "run it again, or see `plimsoll status`")
        raise typer.Exit(REFUSED if plan is not None and (plan.refusals or plan.withheld) else SETTLED)
