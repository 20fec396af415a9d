"""The one writer of an environment, put together from options: connection, watches, stacks, status."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from plimsoll.apply import Applier, ApplySettings
from plimsoll.errors import PlimsollError
from plimsoll.home import state
from plimsoll.model.meta import describe_errors
from plimsoll.observe.cluster import Observer, open_observer
from plimsoll.report import Reporter


@dataclass(frozen=True)
class WriterOptions:
    """What the command line says of a writer."""

    environment: str | None
    kubeconfig: Path | None
    context: str | None
    backend: str
    passphrase_file: Path | None
    provider: str
    shards: int = 4
    armed: int = 1
    work_folder: Path | None = None


@dataclass(frozen=True)
class Writer:
    """Watches that are synced, and stacks that nobody else writes. `environment` is the Environment's name."""

    environment: str
    observer: Observer
    applier: Applier
    reporter: Reporter


@contextmanager
def open_writer(options: WriterOptions) -> Iterator[Writer]:
    """Connects, waits for the watches, makes the applier; both are stopped on leaving. The Lease is not taken yet."""
    with open_observer(options.kubeconfig, options.context) as (connection, observer):
        name = observer.snapshot().environment.name
        if options.environment not in (None, name):
            raise PlimsollError(
                f"the cluster at {connection.server} is the environment {name!r}, not {options.environment!r}",
                "connect to the other cluster with --context, or leave --environment out",
            )
        applier = Applier(_settings(name, options), connection)
        reporter = Reporter(connection)
        try:
            yield Writer(name, observer, applier, reporter)
        finally:
            applier.stop()
            reporter.close()


def _settings(environment: str, options: WriterOptions) -> ApplySettings:
    if options.passphrase_file is None:
        raise PlimsollError(
            "no passphrase file: the state's secrets are sealed with a passphrase",
            "name a file that holds it with --passphrase-file or PULUMI_CONFIG_PASSPHRASE_FILE",
        )
    try:
        return ApplySettings(
            environment=environment,
            work_folder=options.work_folder or state() / "environments" / environment,
            passphrase_file=options.passphrase_file,
            backend=options.backend,
            shards=options.shards,
            pre_started_shards=options.armed,
            provider=options.provider,
            kubeconfig=options.kubeconfig,
            context=options.context,
        )
    except ValidationError as error:
        raise PlimsollError(describe_errors(error)) from None
