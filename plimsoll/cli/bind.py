"""`plimsoll bind`: binds pods with GPU shares, in a cluster without KAI."""

import signal
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import structlog
import typer

from plimsoll.cli.shared import SETTLED, Context, Kubeconfig
from plimsoll.errors import PlimsollError
from plimsoll.logs import log_to_stderr

if TYPE_CHECKING:
    from plimsoll.bind import ShareBinder

log = structlog.get_logger(__name__)
app = typer.Typer(add_completion=False)

LEASE = "plimsoll-bind"


@app.command()
def bind(  # noqa: PLR0917 - options of a command, each given by name
    image: Annotated[str | None, typer.Option(help="image of reservation pods: Plimsoll's or KAI's")] = None,
    scheduler_name: Annotated[str | None, typer.Option(help="schedulerName of the pods to bind")] = None,
    reservation_namespace: Annotated[str | None, typer.Option(help="namespace of reservation pods")] = None,
    reservation_service_account: Annotated[str | None, typer.Option(help="their service account")] = None,
    placement: Annotated[
        list[str] | None, typer.Option(help="NODEPOOL=STRATEGY, binpack or spread; repeat for several")
    ] = None,
    settings: Annotated[Path | None, typer.Option(help="YAML file with all settings")] = None,
    namespace: Annotated[str, typer.Option(help="namespace of its Lease")] = "plimsoll-system",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Bind the pods with GPU shares of one schedulerName, until stopped.

    Does not run in a cluster with KAI's binder. Exit code 0: stopped; 1: an error, including a running binder of KAI.
    """
    from plimsoll.apply import Lease, LeaseSettings
    from plimsoll.bind import ShareBinder, read_settings, refuse_beside_kai
    from plimsoll.cli.controller import retry_transient
    from plimsoll.kube import Connection

    log_to_stderr()
    if not namespace:
        raise PlimsollError("--namespace is empty", "name the namespace of its Lease, or leave the option out")
    reservation = {"image": image, "namespace": reservation_namespace, "serviceAccount": reservation_service_account}
    chosen = read_settings(settings, reservation, scheduler_name, placement or ())
    with closing(Connection.open(kubeconfig, context)) as connection:
        refuse_beside_kai(connection)
        binder = ShareBinder(connection, chosen)
        lease = Lease(connection, LeaseSettings(name=LEASE, namespace=namespace), binder.stop)
        _stop_on_signal(binder)
        try:
            # A standby outlasts an apiserver that does not answer.
            retry_transient(lambda: lease.acquire(None, lambda: _go_on(binder)), binder.stopping, lambda _: None)
        except PlimsollError:
            _go_on(binder)
            raise
        try:
            binder.run()
        finally:
            lease.release()


def _go_on(binder: "ShareBinder") -> None:
    """Ends the wait for the Lease when the binder is stopped."""
    if binder.stopping.requested:
        raise typer.Exit(SETTLED)


def _stop_on_signal(binder: "ShareBinder") -> None:
    def stop(_number: int, _frame: FrameType | None) -> None:
        binder.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
