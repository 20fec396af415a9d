"""`plimsoll ui`: pages of one cluster in the browser."""

import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plimsoll.cli.shared import ERR, Context, Files, Kubeconfig, Paths, named_files, read_files, snapshots
from plimsoll.logs import log_to_stderr
from plimsoll.stop_request import StopRequest

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from plimsoll.observe.cluster import Observer
    from plimsoll.ui import Feed

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
app = typer.Typer(add_completion=False)


@app.command()
def ui(
    ctx: typer.Context,
    paths: Paths = None,
    file: Files = None,
    *,
    port: Annotated[int, typer.Option(help="port of the pages; 0 takes a free one")] = 8765,
    host: Annotated[
        str,
        typer.Option(
            help="address to listen on; put a proxy that authenticates in front of any other address than the loopback"
        ),
    ] = "127.0.0.1",
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="open the pages in the browser")] = True,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show the cluster in the browser, live and read-only: nodes, queues, Workspaces, demand, next plan, history."""
    from plimsoll.ui import serve

    files = named_files(ctx, paths, file)
    log_to_stderr()
    stopping = StopRequest()
    stopping.on_signals()
    # Elsewhere the names by which a proxy reaches the pages are not known here.
    hosts = ("localhost", "127.0.0.1", "[::1]") if host in LOOPBACK else ("*",)
    with (
        _application(files, kubeconfig, context, hosts) as (application, feed),
        serve(application, host, port) as address,
    ):
        ERR.print(f"Plimsoll is at {address} (Ctrl+C ends it)", highlight=False)
        if open_browser:
            webbrowser.open(address)
        stopping.wait()
        feed.close()  # open pages keep a connection until then, for which the server would wait


@contextmanager
def _application(
    files: list[str], kubeconfig: Path | None, context: str | None, hosts: tuple[str, ...]
) -> "Iterator[tuple[Starlette, Feed]]":
    from plimsoll.ui import Feed, create_app

    if files:
        feed = Feed(read_files(files), followed=False)
        yield create_app(feed, hosts), feed
        return
    from plimsoll.observe.cluster import events_about, open_observer

    with open_observer(kubeconfig, context) as (connection, observer):
        feed = Feed(observer.snapshot())
        following = threading.Thread(target=_follow, args=(observer, feed), name="following", daemon=True)
        following.start()
        try:
            yield (
                create_app(feed, hosts, lambda ref: events_about(connection, "Workspace", ref.namespace, ref.name)),
                feed,
            )
        finally:
            feed.close()
            observer.wake()
            following.join(timeout=5)


def _follow(observer: "Observer", feed: "Feed") -> None:
    """Publishes each change that the watches deliver."""
    for snapshot in snapshots(observer, lambda: feed.closed):
        feed.publish(snapshot)
