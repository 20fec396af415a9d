"""`python -m plimsoll.provider --kubeconfig PATH`: the built-in provider as a process of its own."""

import signal
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from plimsoll.errors import PlimsollError
from plimsoll.logs import log_to_stderr
from plimsoll.provider.server import serve


def main(
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Kubeconfig of the cluster to serve; KUBECONFIG or the pod's account if none.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Context in it; its current one by default.")] = None,
    port_file: Annotated[Path | None, typer.Option(help="File to write the port to, once it listens.")] = None,
) -> None:
    """Serves the Kubernetes tokens until it is stopped (Ctrl+C, SIGTERM).

    Attach an engine with PULUMI_DEBUG_PROVIDERS=kubernetes:PORT.
    """
    log_to_stderr()
    try:
        served = serve(kubeconfig, context)
    except PlimsollError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        if port_file is not None:
            part = port_file.with_suffix(".part")
            part.write_text(f"{served.port}\n")
            part.rename(port_file)
        served.wait()
    except KeyboardInterrupt:
        served.stop()


if __name__ == "__main__":
    typer.run(main)
