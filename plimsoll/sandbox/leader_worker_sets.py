"""LeaderWorkerSet's controller in a sandbox: its configuration, and the webhooks that the apiserver calls it by."""

import base64
from pathlib import Path
from typing import Any, Final

import yaml

from plimsoll.sandbox import certificates
from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.ports import LOOPBACK

CONFIGURATION: Final = "lws.yaml"
READY_PATH: Final = "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset"
"""Answers as soon as the webhooks are served."""
_PODS_OF_A_SET: Final = {
    "matchExpressions": [{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}],
}


def configure(folder: Folder, port: int, health_port: int) -> Path:
    """Writes the controller's configuration (config.lws.x-k8s.io/v1alpha1); webhooks are served on `port`."""
    pair = folder.path / "lws"
    pair.mkdir(exist_ok=True)
    for name, source in (("tls.crt", certificates.CERTIFICATE), ("tls.key", certificates.KEY)):
        (pair / name).unlink(missing_ok=True)
        (pair / name).symlink_to(folder.certificates / source)
    configuration = {
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "webhook": {"host": LOOPBACK, "port": port, "certDir": str(pair)},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{health_port}"},
    }
    path = folder.path / CONFIGURATION
    path.write_text(yaml.safe_dump(configuration))
    return path


def webhooks(folder: Folder, declared: Path, port: int) -> Path:
    """Writes the module's webhook configurations with the addresses that they have here."""
    authority = base64.b64encode((folder.certificates / certificates.AUTHORITY).read_bytes()).decode()
    found = [each for each in yaml.safe_load_all(declared.read_text()) if each]
    for configuration in found:
        configuration["metadata"]["name"] = f"lws-{configuration['metadata']['name']}"
        for webhook in configuration["webhooks"]:
            _address(webhook, f"https://{LOOPBACK}:{port}", authority)
    path = folder.path / "lws-webhooks.yaml"
    path.write_text(yaml.safe_dump_all(found))
    return path


def _address(webhook: dict[str, Any], server: str, authority: str) -> None:
    path = webhook["clientConfig"]["service"]["path"]
    webhook["clientConfig"] = {"url": f"{server}{path}", "caBundle": authority}
    if any("pods" in rule["resources"] for rule in webhook["rules"]):
        # As the module's own patches have it: other pods are none of its business.
        webhook["objectSelector"] = _PODS_OF_A_SET
