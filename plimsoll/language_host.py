"""A proxy in front of Pulumi's Python language host that tells the host where a policy pack is.

The newest host in Go's module proxy (of SDK v3.79) reads the program of a plugin from a field that today's engine does
not set, and would run the Pulumi program instead of the policy pack. The proxy sets this field from those that the
engine sets, and forwards everything else unchanged, except a question whose answer the engine would not use. A host
that comes with the pulumi CLI does not need it.

Each run of Pulumi in a sandbox starts the proxy, so it imports little.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc

from plimsoll.lifetime import dies_with

_SERVICE: Final = "/pulumirpc.LanguageRuntime/"
_STREAMING: Final = frozenset({f"{_SERVICE}RunPlugin", f"{_SERVICE}InstallDependencies"})
_REQUIRED_PLUGINS: Final = f"{_SERVICE}GetRequiredPlugins"
_OPTIONS: Final = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))
_THREADS: Final = 32
"""Each running policy pack uses one thread."""


def main(host: str) -> None:
    """Runs until `host` ends. Prints the port first, as the engine expects of a plugin."""
    # A process group of its own: the engine interrupts the group of a plugin that it no longer needs, and a Python
    # program that waits for the engine's end would print a traceback. The host ends with this process, even if it is
    # interrupted before it handles signals, because the engine waits until all holders of its pipes have ended.
    process = subprocess.Popen(
        [host, *sys.argv[1:]],
        stdout=subprocess.PIPE,
        process_group=0,
        # Safe, because this process has only one thread so far.
        preexec_fn=dies_with(os.getpid()),  # noqa: PLW1509
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: _end(process, signal.SIGTERM))
    try:
        assert process.stdout is not None
        port = process.stdout.readline().strip().decode()
        if not port.isdigit():
            sys.exit(process.wait() or 1)
        server = grpc.server(ThreadPoolExecutor(_THREADS), options=_OPTIONS)
        channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=_OPTIONS)
        server.add_generic_rpc_handlers((Forwarding(channel),))
        sys.stdout.write(f"{server.add_insecure_port('127.0.0.1:0')}\n")
        sys.stdout.flush()
        server.start()
        threading.Thread(target=shutil.copyfileobj, args=(process.stdout, sys.stdout.buffer), daemon=True).start()
        code = process.wait()
        server.stop(grace=None)
    finally:
        _end(process, signal.SIGKILL)
    # Not sys.exit: a server thread may still process a call of an engine that has ended.
    sys.stdout.flush()
    os._exit(code)


def _end(process: subprocess.Popen[bytes], number: int) -> None:
    """Sends a signal to the host and the programs that it runs."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


class Forwarding(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Forwards the calls of the service as bytes."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel

    def service(self, handler_call_details: Any) -> Any:
        method = handler_call_details.method
        if not method.startswith(_SERVICE) or (method == _REQUIRED_PLUGINS and not _installs_plugins()):
            return None
        if method in _STREAMING:
            change = with_program if method.endswith("/RunPlugin") else bytes
            return grpc.unary_stream_rpc_method_handler(self._streaming(method, change))
        return grpc.unary_unary_rpc_method_handler(self._single(method))

    def _single(self, method: str) -> Callable[[bytes, Any], bytes]:
        call = self._channel.unary_unary(method)

        def forward(request: bytes, context: Any) -> bytes:
            pending = call.future(request, metadata=context.invocation_metadata())
            context.add_callback(pending.cancel)
            try:
                answer: bytes = pending.result()
            except grpc.RpcError as error:
                context.abort(error.code(), error.details())
            return answer

        return forward

    def _streaming(self, method: str, change: Callable[[bytes], bytes]) -> Callable[[bytes, Any], Iterator[bytes]]:
        call = self._channel.unary_stream(method)

        def forward(request: bytes, context: Any) -> Iterator[bytes]:
            answers = call(change(request), metadata=context.invocation_metadata())
            context.add_callback(answers.cancel)
            try:
                yield from answers
            except grpc.RpcError as error:
                context.abort(error.code(), error.details())

        return forward


def _installs_plugins() -> bool:
    """Whether the engine installs missing plugins. It takes a host that does not know which ones a program requires for
    one whose program requires none; the host here lists all packages with pip, which takes a second."""
    return os.environ.get("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION") != "true"


def with_program(request: bytes) -> bytes:
    """Adds the program and the working directory in `info` to a RunPluginRequest.

    The host runs `python PROGRAM ARGS`; a policy pack is run by the SDK's module `pulumi.policy`.
    """
    message = _request_class().FromString(request)
    directory = message.info.program_directory
    if not message.program and directory:
        arguments = list(message.args)
        del message.args[:]
        if message.kind == "analyzer":
            message.program = "-u"
            message.args.extend(["-m", "pulumi.policy", *arguments, "."])
        else:
            message.program = "."
            message.args.extend(arguments)
        message.pwd = directory
    answer: bytes = message.SerializeToString()
    return answer


def _request_class() -> Any:
    """RunPluginRequest with the fields that are read or set here; the others are kept as they are. Pulumi's own class
    would import all of pulumi."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # few runs have a plugin

    one, many = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL, descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
    text = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
    file = descriptor_pb2.FileDescriptorProto(name="plugin.proto", syntax="proto3")
    info = file.message_type.add(name="ProgramInfo")
    info.field.add(name="program_directory", number=2, type=text, label=one)
    request = file.message_type.add(name="RunPluginRequest")
    request.field.add(name="pwd", number=1, type=text, label=one)
    request.field.add(name="program", number=2, type=text, label=one)
    request.field.add(name="args", number=3, type=text, label=many)
    request.field.add(name="info", number=5, type_name="ProgramInfo", label=one)
    request.field.add(name="kind", number=6, type=text, label=one)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(request.name))
