"""The writer of an environment, built from options: stacks, statuses."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from plimsoll.apply import Applier, ApplySettings, check_passphrase, make_work_folder
from plimsoll.errors import PlimsollError
from plimsoll.home import state
from plimsoll.kube import Connection
from plimsoll.model.api import Environment
from plimsoll.model.meta import describe_errors
from plimsoll.observe.cluster import Observer
from plimsoll.report import Reporter


@dataclass(frozen=True)
class WriterOptions:
    """The options of a writer on the command line."""

    environment: str | None
    kubeconfig: Path | None
    context: str | None
    backend: str
    passphrase_file: Path | None
    secrets_provider: str = "passphrase"
    policy_packs: tuple[Path, ...] = ()
    shards: int = 4
    pre_started: int = 1
    work_folder: Path | None = None
    lease: Mapping[str, float] = field(default_factory=dict)
    """`duration`, `renew_deadline` and `retry_period`, in seconds; absent: the defaults."""


@dataclass(frozen=True)
class Writer:
    """Synced watches, and the stacks of one environment. `environment` is the Environment's name."""

    environment: str
    observer: Observer
    applier: Applier
    reporter: Reporter


@contextmanager
def writer_of(
    options: WriterOptions, connection: Connection, observer: Observer, environment: Environment
) -> Iterator[Writer]:
    """The writer of an Environment; ended on leaving. The Lease is not acquired yet."""
    applier = Applier(apply_settings(environment, options), connection)
    reporter = Reporter(connection)
    try:
        yield Writer(environment.name, observer, applier, reporter)
    finally:
        applier.stop()
        reporter.close()


def check_options(options: WriterOptions) -> None:
    """Raises PlimsollError for what is wrong on this host, whatever the Environment: passphrase file, work folder,
    policy packs."""
    settings = apply_settings(
        Environment.default().model_copy(update={"name": options.environment or "default"}), options
    )
    check_passphrase(settings)
    for pack in options.policy_packs:
        if not (pack / "PulumiPolicy.yaml").is_file():
            raise PlimsollError(f"policy pack {pack}: it has no PulumiPolicy.yaml", "name its folder")
    if options.work_folder is not None:
        make_work_folder(settings)


def check_project(folder: Path) -> None:
    """Raises PlimsollError where the folder has no Pulumi project."""
    if not (folder / "Pulumi.yaml").is_file():
        raise PlimsollError(
            f"{folder / 'Pulumi.yaml'}: no such file", "set the folder of the Pulumi project with --project"
        )


def apply_settings(environment: Environment, options: WriterOptions) -> ApplySettings:
    """Raises PlimsollError that names the option that does not fit."""
    try:
        return ApplySettings.model_validate(
            {
                "environment": environment.name,
                "demand_namespace": environment.spec.demand.namespace,
                "work_folder": options.work_folder or state() / "environments" / environment.name,
                "passphrase_file": options.passphrase_file,
                "backend": options.backend,
                "secrets_provider": options.secrets_provider,
                "policy_packs": options.policy_packs,
                "shards": options.shards,
                "pre_started_shards": options.pre_started,
                "kubeconfig": options.kubeconfig,
                "context": options.context,
                "lease": dict(options.lease),
            }
        )
    except ValidationError as error:
        raise PlimsollError(describe_errors(error)) from None
