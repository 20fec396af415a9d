"""`plimsoll bind`: binds pods with GPU shares, in a cluster without KAI."""

import signal
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import structlog
import typer

from plimsoll.cli.shared import SETTLED, Context, Kubeconfig, log_to_stderr
from plimsoll.errors import PlimsollError

if TYPE_CHECKING:
    from plimsoll.bind import ShareBinder
    from plimsoll.model.api import BinderSettings

log = structlog.get_logger(__name__)
app = typer.Typer(add_completion=False)

LEASE = "plimsoll-bind"


@app.command()
def bind(  # noqa: PLR0917 - options of a command, each given by name
    image: Annotated[str | None, typer.Option(help="image of reservation pods: Plimsoll's or KAI's")] = None,
    scheduler_name: Annotated[str | None, typer.Option(help="schedulerName of the pods to bind")] = None,
    settings: Annotated[Path | None, typer.Option(help="YAML file with all settings")] = None,
    namespace: Annotated[str, typer.Option(help="namespace of its Lease")] = "plimsoll-system",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Bind the pods with GPU shares of one schedulerName, until stopped.

    Does not run in a cluster with KAI's binder. Exit code 0: stopped; 1: an error, including a running binder of KAI.
    """
    from plimsoll.apply import Lease, LeaseSettings
    from plimsoll.bind import ShareBinder, refuse_beside_kai
    from plimsoll.kube import Connection

    log_to_stderr()
    chosen = read_settings(settings, image, scheduler_name)
    with closing(Connection.open(kubeconfig, context)) as connection:
        refuse_beside_kai(connection)
        binder = ShareBinder(connection, chosen)
        lease = Lease(connection, LeaseSettings(name=LEASE, namespace=namespace), binder.stop)
        _stop_on_signal(binder)
        lease.acquire(wait=None, go_on=lambda: _go_on(binder))
        try:
            binder.run()
        finally:
            lease.release()


def read_settings(file: Path | None, image: str | None, scheduler_name: str | None) -> "BinderSettings":
    """The settings of the file, with the options on top. Raises PlimsollError that names each invalid field."""
    import yaml
    from pydantic import ValidationError

    from plimsoll.model.api import BinderSettings
    from plimsoll.model.meta import describe_errors

    try:
        given: Any = yaml.safe_load(file.read_text()) if file is not None else {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise PlimsollError(f"settings {file}: {' '.join(str(error).split())}") from None
    if given is None:
        given = {}
    if not isinstance(given, dict) or not isinstance(given.get("reservation") or {}, dict):
        raise PlimsollError(f"settings {file}: a mapping is needed, such as reservation: {{image: ...}}")
    if image is not None:
        given = {**given, "reservation": {**(given.get("reservation") or {}), "image": image}}
    if scheduler_name is not None:
        given = {**given, "schedulerName": scheduler_name}
    if not (given.get("reservation") or {}).get("image"):
        raise PlimsollError("no image for reservations", "set --image, or reservation.image in the file of --settings")
    try:
        return BinderSettings.model_validate(given)
    except ValidationError as error:
        raise PlimsollError(f"settings: {describe_errors(error)}") from None


def _go_on(binder: "ShareBinder") -> None:
    """Ends the wait for the Lease when the binder is stopped."""
    if binder.stopping:
        raise typer.Exit(SETTLED)


def _stop_on_signal(binder: "ShareBinder") -> None:
    def stop(_number: int, _frame: FrameType | None) -> None:
        binder.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
