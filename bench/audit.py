"""Seconds and peak memory of `plimsoll audit` of a large cluster, as a process of its own that lists it.

    python -m bench.audit [--nodes 1000] [--pods 8000] [--waiting 500] [--plain 20000] [--output json]

An apiserver in this process answers the lists by pages, with manifests of the size of those in real clusters. Pods with
GPU shares fill the nodes, `--waiting` of them are pending in 20 queues of a tree, and there are `--plain` pods without
GPUs. The aims for 1,000 nodes are 60 s and 300 MiB; above
them, the exit code is 1.
"""

import os
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

import orjson
import typer
import yaml
from rich import box
from rich.table import Table

from bench.cluster import CLI
from bench.command import run_benchmark
from bench.large_cluster import node_pool_manifest
from bench.plain_pods import manifests
from bench.stored_cluster import cluster_manifests
from plimsoll.cli.shared import OUT, Format, Output, print_json
from plimsoll.errors import PlimsollError
from plimsoll.kube import CHUNK

Pages = Mapping[str, list[bytes]]
"""The lists that are not empty, by path."""
_AIMED_AT: Final = 1_000
"""The number of nodes of the aims; a smaller run is not held against them."""
_AIMS: Final = {"seconds": 60.0, "peakMib": 300.0}


class Audited(NamedTuple):
    seconds: float
    cpu_seconds: float
    peak_mib: float
    """Largest resident memory of the process."""
    found: dict[str, Any]
    """Its JSON."""


def main(
    nodes: Annotated[int, typer.Option(min=1)] = 1_000,
    pods: Annotated[int, typer.Option(min=0, help="with GPU shares")] = 8_000,
    waiting: Annotated[int, typer.Option(min=0, help="how many of the pods wait")] = 500,
    plain: Annotated[int, typer.Option(min=0, help="pods without GPUs")] = 20_000,
    output: Output = Format.TEXT,
) -> None:
    """Seconds, CPU seconds and peak MiB of one audit."""
    lists = cluster_manifests(nodes, pods, waiting, classes=20, teams=20)
    pages = {
        "/api/v1/nodes": _pages(lists["Node"]),
        "/api/v1/pods": [*_pages(lists["Pod"]), *_pages(manifests(plain, nodes))],
        "/apis/karpenter.sh/v1/nodepools": _pages([node_pool_manifest()]),
        "/apis/scheduling.run.ai/v2/queues": _pages(lists["Queue"]),
        "/apis/scheduling.run.ai/v2alpha2/podgroups": _pages(lists["PodGroup"]),
    }
    audited = audit(pages)
    aims = _AIMS if nodes >= _AIMED_AT else {}
    figures = {
        "seconds": round(audited.seconds, 2),
        "cpuSeconds": round(audited.cpu_seconds, 2),
        "peakMib": round(audited.peak_mib, 1),
    }
    if output is Format.JSON:
        print_json({"nodes": nodes, "pods": pods + plain, **figures, "aims": aims})
    else:
        table = Table("", "measured", "aim", box=box.SIMPLE, title=f"{nodes:,} nodes, {pods + plain:,} pods")
        for name, figure in figures.items():
            table.add_row(name, f"{figure:g}", f"{aims[name]:g}" if name in aims else "")
        OUT.print(table)
    missed = [f"{name} {figures[name]:g}, aim {aim:g}" for name, aim in aims.items() if figures[name] > aim]
    if missed:
        raise PlimsollError(f"above the aims: {'; '.join(missed)}")


def audit(pages: Pages) -> Audited:
    """Raises PlimsollError if the command fails."""
    with _served(pages) as address, TemporaryDirectory() as folder:
        config = Path(folder, "kubeconfig")
        config.write_text(yaml.safe_dump(_kubeconfig(address)))
        written = Path(folder, "audit.json")
        command_line = [*CLI, "audit", "--kubeconfig", str(config), "-o", "json"]
        start = time.perf_counter()
        with written.open("wb") as out, subprocess.Popen(command_line, stdout=out) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        if process.returncode:
            raise PlimsollError("the audit failed", "see its output above")
        return Audited(
            seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, orjson.loads(written.read_bytes())
        )


def _pages(manifests: Iterable[dict[str, Any]]) -> list[bytes]:
    rest = iter(manifests)
    return [orjson.dumps(piece) for piece in iter(lambda: list(islice(rest, CHUNK)), [])]


@contextmanager
def _served(pages: Pages) -> Iterator[str]:
    """The address of an apiserver that has these lists, and all others empty."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            listed = pages.get(asked.path, [])
            number = int(parse_qs(asked.query).get("continue", ["0"])[0])
            more = str(number + 1) if number + 1 < len(listed) else ""
            metadata = orjson.dumps({"resourceVersion": "1", "continue": more})
            items = listed[number] if number < len(listed) else b"[]"
            body = b'{"kind":"List","apiVersion":"v1","metadata":' + metadata + b',"items":' + items + b"}"
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Not logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def _kubeconfig(address: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "clusters": [{"name": "bench", "cluster": {"server": address}}],
        "users": [{"name": "bench", "user": {}}],
    }


if __name__ == "__main__":
    run_benchmark(main)
