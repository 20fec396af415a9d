"""The writer of an environment, built from options: connection, watches, stacks, statuses."""

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
    """The options of a writer on the command line."""

    environment: str | None
    kubeconfig: Path | None
    context: str | None
    backend: str
    passphrase_file: Path | None
    provider: str
    shards: int = 4
    pre_started: int = 1
    work_folder: Path | None = None


@dataclass(frozen=True)
class Writer:
    """Synced watches, and the stacks of one environment. `environment` is the Environment's name."""

    environment: str
    observer: Observer
    applier: Applier
    reporter: Reporter


@contextmanager
def open_writer(options: WriterOptions) -> Iterator[Writer]:
    """Connects, waits for the watches and creates the applier; both stop on exit. The Lease is not acquired yet."""
    with open_observer(options.kubeconfig, options.context) as (connection, observer):
        name = observer.snapshot().environment.name
        if options.environment not in (None, name):
            raise PlimsollError(
                f"the Environment of the cluster at {connection.server} is {name!r}, not {options.environment!r}",
                "connect to the other cluster with --context, or remove --environment",
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
            "no passphrase file: the secrets of the Pulumi state are encrypted with a passphrase",
            "set the file that contains it with --passphrase-file or PULUMI_CONFIG_PASSPHRASE_FILE",
        )
    try:
        return ApplySettings(
            environment=environment,
            work_folder=options.work_folder or state() / "environments" / environment,
            passphrase_file=options.passphrase_file,
            backend=options.backend,
            shards=options.shards,
            pre_started_shards=options.pre_started,
            provider=options.provider,
            kubeconfig=options.kubeconfig,
            context=options.context,
        )
    except ValidationError as error:
        raise PlimsollError(describe_errors(error)) from None
