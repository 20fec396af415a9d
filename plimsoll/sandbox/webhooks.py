"""Webhooks of the controllers in a sandbox: the apiserver calls them on loopback, with the sandbox's certificates."""

import base64
from pathlib import Path
from typing import Any

import yaml

from plimsoll.sandbox import certificates
from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.ports import LOOPBACK


def link_certificates(folder: Folder, into: Path) -> Path:
    """Puts the sandbox's pair into a folder under the names that controller-runtime reads; returns the folder."""
    into.mkdir(parents=True, exist_ok=True)
    for name, source in (("tls.crt", certificates.CERTIFICATE), ("tls.key", certificates.KEY)):
        (into / name).unlink(missing_ok=True)
        (into / name).symlink_to(folder.certificates / source)
    return into


def write(folder: Folder, name: str, declared: Path, port: int, pods: str | None) -> Path:
    """Writes a module's webhook configurations with the address that its controller has here.

    `pods` is the label key of the Pods that the controller's webhooks for Pods are called for, as the module's own
    patches have it: other Pods are none of their business.
    """
    authority = base64.b64encode((folder.certificates / certificates.AUTHORITY).read_bytes()).decode()
    found = [each for each in yaml.safe_load_all(declared.read_text()) if each]
    for configuration in found:
        configuration["metadata"]["name"] = f"{name}-{configuration['metadata']['name']}"
        for webhook in configuration["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://{LOOPBACK}:{port}{path}", "caBundle": authority}
            if pods is not None and _is_for_pods(webhook):
                webhook["objectSelector"] = {"matchExpressions": [{"key": pods, "operator": "Exists"}]}
    path = folder.path / f"{name}-webhooks.yaml"
    path.write_text(yaml.safe_dump_all(found))
    return path


def _is_for_pods(webhook: dict[str, Any]) -> bool:
    return any("pods" in rule["resources"] for rule in webhook["rules"])
