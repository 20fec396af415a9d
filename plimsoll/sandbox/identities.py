"""The users of the sandbox's apiserver: a token and a kubeconfig for each."""

import csv
import io
import secrets
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from plimsoll.sandbox.certificates import AUTHORITY
from plimsoll.sandbox.folder import Folder


class Identity(NamedTuple):
    """A user of the apiserver, as in its static token file."""

    user: str
    groups: tuple[str, ...]


IDENTITIES: Final = {
    "admin": Identity("admin", ("system:masters",)),
    # The service account of the controller's pod, so that it has the roles of the foundation stack.
    "controller": Identity(
        "system:serviceaccount:plimsoll-system:plimsoll",
        ("system:serviceaccounts", "system:serviceaccounts:plimsoll-system"),
    ),
    # The service account of `plimsoll bind`, with the roles of the component ShareBinder.
    "binder": Identity(
        "system:serviceaccount:plimsoll-system:plimsoll-binder",
        ("system:serviceaccounts", "system:serviceaccounts:plimsoll-system"),
    ),
    "viewer": Identity("viewer", ("plimsoll-sandbox:viewers",)),
    "scheduler": Identity("system:kube-scheduler", ()),
    # They replace controllers that clouds run with broad roles of their own.
    "controller-manager": Identity("system:kube-controller-manager", ("system:masters",)),
    "kwok": Identity("kwok", ("system:masters",)),
    "karpenter": Identity("karpenter", ("system:masters",)),
}

KAI_NAMESPACE: Final = "kai-scheduler"
KAI_ACCOUNTS: Final = {
    "admission": "admission",
    "binder": "binder",
    "podgroupcontroller": "podgroup-controller",
    "podgrouper": "pod-grouper",
    "queuecontroller": "queue-controller",
    "scheduler": "scheduler",
}
"""The service accounts of the chart of KAI, by program."""


def kai_user(program: str) -> str:
    """The name of the identity of one of KAI's programs."""
    return f"kai-{program}"


_ALL: Final = IDENTITIES | {
    kai_user(program): Identity(f"system:serviceaccount:{KAI_NAMESPACE}:{account}", ("system:serviceaccounts",))
    for program, account in KAI_ACCOUNTS.items()
}


def write_tokens(folder: Folder) -> None:
    """Writes a random token for each identity. Those that exist are kept: an earlier release may have had fewer."""
    tokens = _tokens(folder)
    text = io.StringIO()
    writer = csv.writer(text)
    for name, identity in _ALL.items():
        writer.writerow([tokens.get(name) or random_secret(), identity.user, name, ",".join(identity.groups)])
    write_secret(folder.tokens, text.getvalue())


def _tokens(folder: Folder) -> dict[str, str]:
    """The tokens by the name of their identity."""
    if not folder.tokens.exists():
        return {}
    with folder.tokens.open(newline="") as rows:
        return {row[2]: row[0] for row in csv.reader(rows)}


def write_kubeconfigs(folder: Folder, port: int, *, kai: bool) -> None:
    """Writes a kubeconfig for each identity, for the apiserver on that loopback port; with `kai`, for KAI's programs
    too."""
    tokens = _tokens(folder)
    for name in _ALL if kai else IDENTITIES:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": folder.name,
            "clusters": [
                {
                    "name": "sandbox",
                    "cluster": {
                        "server": f"https://127.0.0.1:{port}",
                        "certificate-authority": str(folder.certificates / AUTHORITY),
                    },
                }
            ],
            "users": [{"name": name, "user": {"token": tokens[name]}}],
            "contexts": [{"name": folder.name, "context": {"cluster": "sandbox", "user": name}}],
        }
        write_secret(folder.kubeconfig(name), yaml.safe_dump(config, sort_keys=False))


def write_secret(path: Path, text: str) -> None:
    """Writes a file that only its owner may read, atomically."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    new.write_text(text)
    new.replace(path)


def random_secret() -> str:
    """A random secret of 256 bits, as text."""
    return secrets.token_urlsafe(32)
