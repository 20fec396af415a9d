"""Wrong uses of the command line: the exit code and the lines on standard error."""

import contextlib
import io
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import structlog
import yaml

from plimsoll.cli import main
from tests.queues.manifests import queue

FILES: Final[Mapping[str, str]] = {
    "broken.yaml": "a: [",
    "partial.yaml": "apiVersion: v1\nkind: Pod\nspec: {}\n",
    "list.yaml": "- a\n",
    "queues.yaml": yaml.safe_dump(queue("team")),
    "pods.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: main}]}\n",
    "workspaces.yaml": yaml.safe_dump_all(
        {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "Workspace",
            "metadata": {"name": "phi", "namespace": namespace},
            "spec": {"inference": {"preset": {"name": "phi-4"}}},
        }
        for namespace in ("a", "b")
    ),
    "unknown-rule.yaml": "rules: {image-tag-pined: {}}\n",
    "unknown-option.yaml": "rules: {gpu-budget: {options: {quota: 3}}}\n",
    "exemption.yaml": "exemptions: [{rule: image-tag-pinned, reason: later, until: 2027-01-01}]\n",
    "settings.yaml": "reservation: {image: a}\nscheduler: own\n",
    "kubeconfig.yaml": "apiVersion: v1\nkind: Config\n",
    "unreachable.yaml": yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
            "users": [{"name": "u", "user": {}}],
        }
    ),
    "empty/readme.txt": "no manifests\n",
}

COMMANDS: Final = (
    "plans",
    "plan --file-name a",
    "plan -f gone.yaml",
    "plan -f broken.yaml",
    "plan -f partial.yaml",
    "plan -f list.yaml",
    "plan -f empty",
    "plan --kubeconfig gone.yaml",
    "plan --kubeconfig kubeconfig.yaml",
    "status --kubeconfig unreachable.yaml",
    "estimate phi-5",
    "estimate",
    "estimate --size-gib 10",
    "estimate phi-4 -t Standard_NC24ads_A100_v3",
    "estimate phi-4 -t Standard_NC24ads_A100_v4 --gpu-memory-gib 80",
    "estimate phi-4 --gpus-per-node 2",
    "estimate phi-4 --mig-profile 3g.40gb --gpu-memory-gib 40",
    "estimate phi-4 --mig-profile half",
    "estimate phi-4 --utilization most",
    "estimate phi-4 --utilization 1.5",
    "estimate phi-4 --context-length 0",
    "estimate phi-4 --cloud moon",
    "demnd -f pods.yaml",
    "xyzzy",
    "why pod gone -f pods.yaml",
    "why node gone -f pods.yaml",
    "why queue gone -f queues.yaml",
    "diff -f pods.yaml",
    "diff --against pods.yaml",
    "diff pods.yaml --against cluster --against pods.yaml",
    "audit pods.yaml --context c",
    "policy check",
    "why workspace phi -f workspaces.yaml",
    "why workspace none -f workspaces.yaml",
    "why workspace phi -n c -f workspaces.yaml",
    "demand -f pods.yaml --plot-to picture.png",
    "demand -f pods.yaml --plot-to gone/picture.svg",
    "queues check -f partial.yaml",
    "queues check -f queues.yaml --delete gone",
    "policy check gone.yaml",
    "policy check pods.yaml --date tomorrow",
    "policy check pods.yaml -c unknown-rule.yaml",
    "policy check pods.yaml -c unknown-option.yaml",
    "policy check pods.yaml -c exemption.yaml",
    "import kaito broken.yaml",
    "import kaito pods.yaml",
    "import kai pods.yaml",
    "import kai pods.yaml --to-claims --consumable-shares all",
    "import kai pods.yaml --to-claims --gpu-memory much",
    "bind --kubeconfig unreachable.yaml",
    "bind --settings settings.yaml --kubeconfig unreachable.yaml",
    "run --kubeconfig gone.yaml",
    "run --passphrase-file gone --kubeconfig gone.yaml",
    "run --passphrase-file pods.yaml --work-folder pods.yaml/work --kubeconfig gone.yaml",
    "run --passphrase-file pods.yaml --kubeconfig gone.yaml",
    "destroy --project gone --yes",
    "run --timeout 60",
    "run --output json",
    "run --once --pre-started 2",
    "run --metrics-host 0.0.0.0",
    "drift --stack environment",
    "drift --project gone",
    "status --fleet fleet.yaml --watch",
    "plan -f pods.yaml --context c",
    "why workspace phi -f workspaces.yaml --kubeconfig gone.yaml",
    "demand -f pods.yaml --plot -o json",
    "gpus -f pods.yaml --context c",
    "savings -f pods.yaml --context c",
    "top -f pods.yaml --context c",
    "ui -f pods.yaml --context c",
    "queues -f queues.yaml --context c",
    "queues -f queues.yaml --usage pods.yaml",
    "queues -f queues.yaml --k-value 2",
    "queues -f queues.yaml check",
    "queues check -f queues.yaml --context c",
    "estimate phi-4 -t Standard_NC24ads_A100_v4 --by kv-cache",
    "estimate phi-4 --gpu-memory-gib 80 --prices gone.csv",
    "estimate --size-gib 10 --bytes-per-token 9 --hub https://huggingface.co",
    "presets --from gone.yaml -o json",
    "prices --from gone.csv --all",
    "init folder --on byo --template --name a",
    "probe --print --once",
    "sandbox install --parts etcd --trainer",
    "sandbox logs --follow",
    "probe --print --root . --patience 0",
)


def messages(folder: Path) -> dict[str, dict[str, Any]]:
    """By command, in a folder with FILES: the exit code, and the lines on standard error."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("KUBECONFIG", "PULUMI_CONFIG_PASSPHRASE_FILE", "PULUMI_BACKEND_URL", "PLIMSOLL_DEBUG"):
            patch.delenv(name, raising=False)
        return {command: dict(_run(command, patch)) for command in COMMANDS}


def _run(command: str, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    patch.setattr(sys, "argv", ["plimsoll", *command.split()])
    message = io.StringIO()
    with contextlib.redirect_stderr(message), contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as end:
            yield "exit code", end.code
        finally:
            structlog.reset_defaults()  # some commands send their logs to the standard error of just then
    yield "error", message.getvalue().replace(str(Path.cwd()), "/FOLDER").splitlines()
