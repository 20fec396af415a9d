"""A private registry: with the Secrets that pods of presets name, each of their images can be pulled.

The test looks credentials up as a kubelet does: in the Secrets of the pod's namespace that it names, by the registry in
the image's name. KWOK's kubelets pull nothing.
"""

import base64
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.serving.test_pod_settings import a_chat, pods_of

LOGIN = base64.b64encode(b"robot:secret").decode()
OTHER = base64.b64encode(b"robot:other").decode()


class _Registry(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = self.headers.get("Authorization") == f"Basic {LOGIN}"
        self.send_response(200 if known and self.path.startswith("/v2/") else 401)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def a_secret(host: str, login: str = LOGIN) -> dict[str, Any]:
    """As `kubectl create secret docker-registry` makes it."""
    config = json.dumps({"auths": {host: {"auth": login}}})
    data = {".dockerconfigjson": base64.b64encode(config.encode()).decode()}
    return {"type": "kubernetes.io/dockerconfigjson", "data": data}


def pulled(spec: Mapping[str, Any], secrets: Mapping[str, dict[str, Any]]) -> dict[str, int]:
    """By image of the pod, the best answer of its registry to the credentials that the named Secrets have for it."""
    answers = {}
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        host, _, repository = container["image"].partition("/")
        name, _, tag = repository.rpartition(":")
        logins = [None, *(_login(secrets[each["name"]], host) for each in spec.get("imagePullSecrets", ()))]
        answers[container["image"]] = min(_answer(f"http://{host}/v2/{name}/manifests/{tag}", each) for each in logins)
    return answers


def _login(secret: Mapping[str, Any], host: str) -> str | None:
    assert secret["type"] == "kubernetes.io/dockerconfigjson"
    config = json.loads(base64.b64decode(secret["data"][".dockerconfigjson"]))
    found: str | None = config["auths"].get(host, {}).get("auth")
    return found


def _answer(address: str, login: str | None) -> int:
    headers = {} if login is None else {"Authorization": f"Basic {login}"}
    try:
        with urlopen(Request(address, headers=headers), timeout=60) as answer:
            status: int = answer.status
            return status
    except HTTPError as error:
        with error:
            return error.code


def test_every_image_of_a_presets_pods_can_be_pulled_with_the_secrets_that_they_name(registry: str) -> None:
    adapter = {"source": {"name": "law", "image": f"{registry}/adapters/law:1", "imagePullSecrets": ["adapters"]}}
    workspace = a_chat({"imagePullSecrets": ["registry"]}, adapters=[adapter])
    spec = pods_of(workspace, inferenceImage=f"{registry}/vllm-openai:v0.32.0")["spec"]
    both = {"registry": a_secret(registry), "adapters": a_secret(registry)}
    assert pulled(spec, both) == {f"{registry}/vllm-openai:v0.32.0": 200, f"{registry}/adapters/law:1": 200}


def test_the_secret_of_the_environment_is_enough(registry: str) -> None:
    settings: dict[str, Any] = {"inferenceImage": f"{registry}/vllm-openai:v0.32.0"}
    [with_none] = pulled(pods_of(a_chat(), **settings)["spec"], {}).values()
    spec = pods_of(a_chat(), **settings, presetPods={"imagePullSecrets": ["registry"]})["spec"]
    answers = [
        *pulled(spec, {"registry": a_secret(registry)}).values(),
        *pulled(spec, {"registry": a_secret("registry.internal")}).values(),
        *pulled(spec, {"registry": a_secret(registry, OTHER)}).values(),
    ]
    assert (with_none, answers) == (401, [200, 401, 401])
