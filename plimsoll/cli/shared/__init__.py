"""What several commands share: options, output, logs."""

from plimsoll.cli.shared.completion import namespaces, workspaces
from plimsoll.cli.shared.effect import none_before_command, only_with, only_without
from plimsoll.cli.shared.findings import print_findings
from plimsoll.cli.shared.following import snapshots
from plimsoll.cli.shared.options import (
    Backend,
    Context,
    EnvironmentName,
    Files,
    Kubeconfig,
    LeaseDuration,
    LeaseRenewDeadline,
    LeaseRetryPeriod,
    PassphraseFile,
    PolicyPacks,
    Provider,
    SecretsProvider,
    WorkFolder,
)
from plimsoll.cli.shared.output import (
    ERR,
    FAILED,
    INTERRUPTED,
    OUT,
    REFUSED,
    SETTLED,
    Format,
    Output,
    print_document,
    print_error,
    print_json,
    print_table,
    print_tables,
    print_warnings,
)
from plimsoll.cli.shared.planning import next_plan
from plimsoll.cli.shared.reading import read_files, read_snapshot

__all__ = [
    "ERR",
    "FAILED",
    "INTERRUPTED",
    "OUT",
    "REFUSED",
    "SETTLED",
    "Backend",
    "Context",
    "EnvironmentName",
    "Files",
    "Format",
    "Kubeconfig",
    "LeaseDuration",
    "LeaseRenewDeadline",
    "LeaseRetryPeriod",
    "Output",
    "PassphraseFile",
    "PolicyPacks",
    "Provider",
    "SecretsProvider",
    "WorkFolder",
    "namespaces",
    "next_plan",
    "none_before_command",
    "only_with",
    "only_without",
    "print_document",
    "print_error",
    "print_findings",
    "print_json",
    "print_table",
    "print_tables",
    "print_warnings",
    "read_files",
    "read_snapshot",
    "snapshots",
    "workspaces",
]
