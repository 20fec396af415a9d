"""A small model hub on this machine, with files at the paths of Hugging Face."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from plimsoll.model.api import ModelHub

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "rope_scaling": {"factor": 8.0},
    "vocab_size": 128256,
}
INDEX = {"metadata": {"total_size": 16_060_522_496}, "weight_map": {"a": "model-00001-of-00004.safetensors"}}


class Hub:
    """The files by path, the recorded requests, and how requests fail."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.gated: dict[str, str] = {}
        """The token that a model needs, by name."""
        self.redirects: dict[str, str] = {}
        self.linked_sizes: dict[str, int] = {}
        """Header of a redirect, by path."""
        self.status = 0
        """Status of every response, unless it is 0."""
        self.slow = threading.Event()
        """If set, response bodies are sent in small parts without an end."""
        self.ended = threading.Event()
        self.asked: list[tuple[str, str, str]] = []
        """Method, path, and the Authorization header."""
        self.url = ""

    def add(self, name: str, config: Any = LLAMA, index: Any = INDEX, **files: bytes) -> None:
        contents = {"config.json": config, "model.safetensors.index.json": index}
        for file, content in contents.items():
            if content is not None:
                self.files[f"/{name}/resolve/main/{file}"] = json.dumps(content).encode()
        for file, text in files.items():
            self.files[f"/{name}/resolve/main/{file.replace('_', '.')}"] = text

    def spec(self, **more: Any) -> ModelHub:
        return ModelHub.model_validate({"endpoint": self.url, "deadlineSeconds": 10, **more})


@contextmanager
def a_hub() -> Iterator[Hub]:
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hub.asked.append((self.command, self.path, self.headers.get("Authorization", "")))
            name = "/".join(self.path.split("/")[1:3])
            if hub.status:
                self.send_error(hub.status)
            elif self.path in hub.redirects and self.may_read(name):
                self.send_response(302)
                self.send_header("Location", hub.redirects[self.path])
                if self.path in hub.linked_sizes:
                    self.send_header("X-Linked-Size", str(hub.linked_sizes[self.path]))
                self.end_headers()
            elif not self.may_read(name):
                self.send_response(401)
                self.send_header("X-Error-Code", "GatedRepo")
                self.end_headers()
            elif self.path not in hub.files:
                self.send_error(404)
            else:
                self.send_file(hub.files[self.path])

        def may_read(self, name: str) -> bool:
            return name not in hub.gated or self.headers.get("Authorization") == f"Bearer {hub.gated[name]}"

        def do_HEAD(self) -> None:
            self.do_GET()

        def send_file(self, content: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(10**9 if hub.slow.is_set() else len(content)))
            self.end_headers()
            if self.command == "HEAD":
                return
            if not hub.slow.is_set():
                self.wfile.write(content)
            while hub.slow.is_set() and not hub.ended.wait(0.05):
                self.wfile.write(b" ")

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    serving.start()
    try:
        yield hub
    finally:
        hub.ended.set()
        server.shutdown()
        server.server_close()
        serving.join(5)
