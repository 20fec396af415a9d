"""Exec plugins: programs, such as `aws eks get-token`, that a user of a kubeconfig names and that print credentials.

They are run here because the client library waits for them without a limit, and only logs how they fail. The contract:
https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

import os
import subprocess
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from plimsoll.kube.account import Account
from plimsoll.kube.errors import ConnectionFailedError

SECONDS: Final = 60.0
"""Limit of a run. Within it, a person may log in."""
_EARLY: Final = timedelta(minutes=1)
"""Credentials are renewed this long before they expire."""


class _Fields(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, frozen=True)


class _Variable(_Fields):
    name: str
    value: str


class _Settings(_Fields):
    """`exec` of a user."""

    api_version: str
    command: str
    args: tuple[str, ...] | None = None
    env: tuple[_Variable, ...] | None = None
    interactive_mode: str = "IfAvailable"
    provide_cluster_info: bool = False


class _Status(_Fields):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: AwareDatetime | None = None


class _Credential(_Fields):
    """ExecCredential, which the plugin prints."""

    api_version: str
    status: _Status


class ExecPlugin:
    """The plugin of one account for one cluster. `settings` and `cluster` are as in the kubeconfig, which lies in
    `folder`. Raises ConnectionFailedError if a setting is invalid."""

    def __init__(self, account: Account, settings: Any, cluster: dict[str, Any], folder: Path | None) -> None:
        self._account = account
        self._cluster = cluster
        self._folder = folder
        self._renewal = datetime.min.replace(tzinfo=UTC)
        try:
            self._settings = _Settings.model_validate(settings)
        except ValidationError as error:
            raise self._failure(f"`exec` in the kubeconfig: {_first(error)}") from None

    @property
    def due(self) -> bool:
        """Whether it has not run, or its credentials expire soon."""
        return datetime.now(UTC) >= self._renewal

    def credentials(self) -> dict[str, str]:
        """Runs it. Returns fields of a user in a kubeconfig: a token, a certificate with its key, or both.

        Raises ConnectionFailedError if it returns none in time.
        """
        try:
            credential = _Credential.model_validate_json(self._output())
        except ValidationError as error:
            raise self._failure(f"it printed no ExecCredential: {_first(error)}") from None
        version, status = self._settings.api_version, credential.status
        if credential.api_version != version:
            raise self._failure(f"it prints {credential.api_version}, but the kubeconfig sets {version}")
        expires = status.expiration_timestamp
        self._renewal = expires - _EARLY if expires is not None else datetime.max.replace(tzinfo=UTC)
        found = {"token": status.token} if status.token else {}
        if status.client_certificate_data and status.client_key_data:
            found["client-certificate-data"] = b64encode(status.client_certificate_data.encode()).decode()
            found["client-key-data"] = b64encode(status.client_key_data.encode()).decode()
        if not found:
            raise self._failure("its ExecCredential has neither a token nor a certificate with its key")
        return found

    def _output(self) -> str:
        settings = self._settings
        interactive = settings.interactive_mode != "Never" and os.isatty(0)
        spec: dict[str, Any] = {"interactive": interactive}
        if settings.provide_cluster_info:
            extensions = {each["name"]: each["extension"] for each in self._cluster.get("extensions") or ()}
            spec["cluster"] = {**self._cluster, "config": extensions.get("client.authentication.k8s.io/exec")}
        info = {"apiVersion": settings.api_version, "kind": "ExecCredential", "spec": spec}
        variables = {each.name: each.value for each in settings.env or ()}
        try:
            run = subprocess.run(
                [settings.command, *(settings.args or ())],
                env={**os.environ, **variables, "KUBERNETES_EXEC_INFO": orjson.dumps(info).decode()},
                cwd=self._folder,
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if interactive else subprocess.PIPE,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise self._failure(f"it did not end within {SECONDS:g} s") from None
        except (OSError, ValueError) as error:
            raise self._failure(str(error)) from None
        if run.returncode:
            raise self._failure(f"exit code {run.returncode}: {run.stderr or ''}")
        return run.stdout

    def _failure(self, why: str) -> ConnectionFailedError:
        return ConnectionFailedError(
            f"{self._account.name}: the exec plugin {self._account.plugin!r} of user {self._account.user!r} gives no "
            f"credentials: {' '.join(why.split())}",
            "run the plugin's command by hand, and install it or log in again where it says so or waits for it",
        )


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    return ": ".join((".".join(map(str, first["loc"])), first["msg"])) if first["loc"] else first["msg"]
