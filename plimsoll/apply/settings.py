"""Settings for applying Plans."""

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from plimsoll.labels import SHARD, WORKSPACE_NAMESPACE, as_label_value
from plimsoll.model import REQUEST_KINDS
from plimsoll.model.api import DemandSettings
from plimsoll.model.meta import Declared

AbsolutePath = Annotated[Path, AfterValidator(Path.absolute)]
"""Made absolute by the working directory: engines run in folders of their own."""
PROJECT: Final = "plimsoll"
"""Pulumi project of the capacity stacks."""
_IN_DEMAND_NAMESPACE: Final = frozenset({*REQUEST_KINDS, "PodTemplate"})
"""Kinds of capacity requests, and of what they refer to."""


class LeaseSettings(Declared):
    """The Lease that ensures one writer for a cluster. Durations in seconds, as in client-go's leader election."""

    name: str = "plimsoll"
    """The name does not depend on the Environment, so all writers of a cluster use the same Lease."""
    namespace: str = Field(default="plimsoll-system", min_length=1, max_length=63)
    duration: float = Field(default=15.0, gt=0, le=86_400)
    """How long after the last renewal the Lease expires."""
    renew_deadline: float = Field(default=10.0, gt=0)
    """A holder that could not renew for this long counts the Lease as lost."""
    retry_period: float = Field(default=5.0, gt=0)
    """Time between two renewals. A standby looks at the Lease at least as often, and at least every half second."""

    @model_validator(mode="after")
    def _ordered(self) -> "LeaseSettings":
        if not self.retry_period < self.renew_deadline < self.duration:
            raise ValueError("retryPeriod < renewDeadline < duration must hold")
        return self


class ApplySettings(Declared):
    """Settings of an Applier."""

    environment: Annotated[str, Field(pattern=r"^[a-z0-9](?:[-a-z0-9]{0,38}[a-z0-9])?$")]
    """Name of the environment: a DNS label of at most 40 characters, part of the stacks' names."""
    demand_namespace: str = DemandSettings().namespace
    """The Environment's `demand.namespace`: only there, capacity requests are the controller's."""
    work_folder: AbsolutePath
    """Folder for the stacks' work folders and, by default, the state. It is created if it is missing."""
    passphrase_file: AbsolutePath | None = None
    """File of the secrets provider `passphrase`; only the engine reads it."""
    backend: str = ""
    """URL of the state backend; empty: the folder `state` in the work folder."""
    secrets_provider: str = "passphrase"
    """Secrets provider of new stacks: `passphrase`, or the URL of a key, such as
    `awskms://alias/plimsoll?region=eu-central-1`."""
    shards: int = Field(default=4, ge=1, le=64)
    """Number of stacks for new objects. Other existing stacks of the environment are used too."""
    pre_started_shards: int = Field(default=1, ge=0, le=64)
    """Number of pre-started updates; each takes about 220 MB, with its plugin."""
    objects_per_shard: int = Field(default=150, ge=1)
    """Number of objects from which a stack gets no new ones while another stack has room."""
    kubeconfig: AbsolutePath | None = None
    context: str | None = None
    pulumi: Path | None = None
    """Path of the CLI; None: the one on PATH."""
    pulumi_home: Path | None = None
    policy_packs: tuple[AbsolutePath, ...] = ()
    history: int = Field(default=50, ge=1)
    """Number of updates in the history of each stack; older ones are removed."""
    lease: LeaseSettings = LeaseSettings()

    @field_validator("backend")
    @classmethod
    def _absolute(cls, backend: str) -> str:
        parts = urlsplit(backend)
        if backend and not parts.scheme:
            raise ValueError("must be a URL such as file:///var/lib/plimsoll or s3://bucket/prefix")
        if parts.scheme == "file" and (
            parts.netloc not in ("", "~") or not (parts.path.startswith("/") or parts.netloc)
        ):
            raise ValueError("a file backend must name an absolute folder: file:///folder")
        if parts.scheme in ("s3", "gs", "azblob") and not parts.netloc:
            raise ValueError(f"must name a bucket: {parts.scheme}://bucket/prefix")
        return backend

    @field_validator("secrets_provider")
    @classmethod
    def _known(cls, provider: str) -> str:
        if provider not in ("passphrase", "default") and not urlsplit(provider).scheme:
            raise ValueError("must be `passphrase`, or the URL of a key such as awskms://alias/plimsoll?region=...")
        return provider

    @property
    def backend_url(self) -> str:
        return self.backend or f"file://{self.work_folder / 'state'}"

    def stack_name(self, number: int) -> str:
        return f"{self.stack_prefix}{number}"

    @property
    def stack_prefix(self) -> str:
        return f"capacity-{self.environment}-"

    def shard_number(self, stack: str) -> int | None:
        """The number in the name of one of this environment's stacks; None for any other name."""
        number = stack.removeprefix(self.stack_prefix)
        return int(number) if number != stack and number.isdecimal() else None

    def owns(self, live: Mapping[str, Any]) -> bool:
        """Whether a live object has the label of one of this environment's stacks, in a place where the controller
        creates objects: whoever may write in another namespace may set labels there."""
        labels, namespace = live["metadata"].get("labels") or {}, live["metadata"].get("namespace", "")
        if self.shard_number(labels.get(SHARD, "")) is None:
            return False
        if live["kind"] in _IN_DEMAND_NAMESPACE:
            return bool(namespace == self.demand_namespace)
        return not namespace or labels.get(WORKSPACE_NAMESPACE) == as_label_value(namespace)


def plugin_version() -> str:
    """Version of the installed pulumi-kubernetes SDK, which is also that of the plugin. The SDK itself is never
    imported."""
    return importlib.metadata.version("pulumi-kubernetes")
