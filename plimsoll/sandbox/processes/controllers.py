"""Controllers from Go modules that a sandbox runs, with their CRDs, configuration and webhooks.

They use the component configuration of controller-runtime. The apiserver calls their webhooks on loopback, with the
sandbox's certificates.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from plimsoll.sandbox.certificates import AUTHORITY, link_certificates
from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.parts import part
from plimsoll.sandbox.processes.ports import LOOPBACK
from plimsoll.sandbox.processes.process import Process
from plimsoll.sandbox.state import Settings


@dataclass(frozen=True)
class Controller:
    """A controller. `name` is also the name of its part, its process and the port of its webhooks."""

    name: str
    program: str
    api_version: str
    """apiVersion of its configuration."""
    certificates: str
    """The field of its configuration that selects who creates its certificates."""
    ready_path: str
    """Path of the webhook that is registered last. When it answers, all webhooks are served."""
    pods: str | None = None
    """Label key of the pods for which its pod webhooks are called, as in the module's own patches."""
    names_certificates: bool = True
    """Whether its configuration has a field for the folder of the certificates."""

    @property
    def ports(self) -> tuple[str, str]:
        """Names of its ports: for webhooks and for health checks."""
        return self.name, f"{self.name}-health"

    @property
    def crds(self) -> Path:
        """Folder of its CustomResourceDefinitions."""
        return part(self.name).cached / "crds"

    def process(self, folder: Folder, ports: Mapping[str, int]) -> Process:
        """The process; writes its configuration. It has broad permissions, like a controller that a cloud runs."""
        port, health = (ports[name] for name in self.ports)
        own = folder.path / self.name
        # The default path below TMPDIR, if its configuration has no field for it.
        pair = own / "k8s-webhook-server" / "serving-certs"
        link_certificates(folder.certificates, pair)
        configuration = {
            "apiVersion": self.api_version,
            "kind": "Configuration",
            self.certificates: {"enable": False},
            "leaderElection": {"leaderElect": False},
            "webhook": {"host": LOOPBACK, "port": port, **({"certDir": str(pair)} if self.names_certificates else {})},
            "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": f"{LOOPBACK}:{health}"},
        }
        path = folder.path / f"{self.name}.yaml"
        path.write_text(yaml.safe_dump(configuration))
        return Process(
            self.name,
            (str(folder.bin() / self.program), f"--config={path}"),
            port=port,
            ready_url=f"https://{LOOPBACK}:{port}{self.ready_path}",
            environment={"KUBECONFIG": str(folder.kubeconfig("controller-manager")), "TMPDIR": str(own)},
        )

    def write_webhooks(self, folder: Folder, ports: Mapping[str, int]) -> Path:
        """Writes the module's webhook configurations with the address that the controller has in the sandbox."""
        authority = base64.b64encode((folder.certificates / AUTHORITY).read_bytes()).decode()
        declared = (part(self.name).cached / "webhooks.yaml").read_text()
        found = [each for each in yaml.safe_load_all(declared) if each]
        for configuration in found:
            configuration["metadata"]["name"] = f"{self.name}-{configuration['metadata']['name']}"
            for webhook in configuration["webhooks"]:
                path = webhook["clientConfig"]["service"]["path"]
                url = f"https://{LOOPBACK}:{ports[self.name]}{path}"
                webhook["clientConfig"] = {"url": url, "caBundle": authority}
                if self.pods is not None and _is_for_pods(webhook):
                    webhook["objectSelector"] = {"matchExpressions": [{"key": self.pods, "operator": "Exists"}]}
        target = folder.path / f"{self.name}-webhooks.yaml"
        target.write_text(yaml.safe_dump_all(found))
        return target


LEADER_WORKER_SET: Final = Controller(
    "lws",
    "lws-controller",
    "config.lws.x-k8s.io/v1alpha1",
    certificates="internalCertManagement",
    ready_path="/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset",
    pods="leaderworkerset.sigs.k8s.io/name",
)
JOB_SET: Final = Controller(
    "jobset",
    "jobset-controller",
    "config.jobset.x-k8s.io/v1alpha1",
    certificates="internalCertManagement",
    ready_path="/validate--v1-pod",
    pods="jobset.sigs.k8s.io/jobset-name",
)
TRAINER: Final = Controller(
    "trainer",
    "trainer-controller-manager",
    "config.trainer.kubeflow.org/v1alpha1",
    certificates="certManagement",
    ready_path="/validate-trainer-kubeflow-org-v1alpha1-trainjob",
    names_certificates=False,
)


def wanted(settings: Settings) -> tuple[Controller, ...]:
    """The controllers of a sandbox with these settings."""
    return (*((LEADER_WORKER_SET,) if settings.lws else ()), *((JOB_SET, TRAINER) if settings.trainer else ()))


def _is_for_pods(webhook: dict[str, Any]) -> bool:
    return any("pods" in rule["resources"] for rule in webhook["rules"])
