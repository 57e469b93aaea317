"""Runs a program with drywarp's library in place of the CUDA runtime, and serves its requests.

The program's library (`native/`) connects to a socket that only accepts this user's processes; each that does gets a
device of its own and a thread here. A request is answered before the program continues, so that a crash of either
side leaves the other one with a clear message.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import hashlib
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

from ..analysis.fits import check_clock
from ..analysis.request import Options
from ..core.library import cuda_library
from ..errors import InterruptedRunError, ToolError, UsageError
from ..frontends.binary.containers import holds_device_code
from ..frontends.binary.kept import SUFFIX
from ..hardware import Gpu, load_gpu
from ..support.folders import Progress, cache_folder, listening, read_bytes, scratch_folder
from .asked import LAUNCH_STEPS, TOTAL_STEPS, Plan, quiet_options
from .calls import Answer
from .device import Device
from .estimates import PREDICTIONS, Choice
from .heap import START
from .keep import Keeper
from .result import ProcessRun, ProgramRun
from .sum_up import finished

_REQUEST, _REPLY = struct.Struct("<48s14qQ"), struct.Struct("<q8qq2Q")
_MOST_BYTES = 1 << 31
"""Maximum bytes of one request: a fat binary."""
_VALUES = 8
_NAMES = ("libcuda.so.1", "libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13")
_SOCKET_VARIABLE, _CLOCK_VARIABLE = "DRYWARP_RUN_SOCKET", "DRYWARP_RUN_CLOCK"
_LAST_WORDS_S = 2.0
"""Time for processes that the program has left behind to end."""


@dataclass(frozen=True)
class ProgramRequest:
    """A program to run: its command, on which GPU, and how much of it is computed.

    A command that begins with a CUDA source is built first, one that begins with a Python file is run by this Python.
    `launch_steps` and `total_steps` are the most warp instructions that are run of a launch and of the program. With
    `virtual_clock` the host's clocks show predicted time. `build` are nvcc's options for a source. `choice` says which
    launches are predicted, `keep` names the folder to which they are written, and with `behind` each kernel's longest
    launch is analysed with its findings. `check` looks for faults that a GPU would not show. Each process has
    `devices` GPUs. If `sampled`, only those launches are computed whose results the host reads. After the first
    `predictions` different launches of a kernel, some are estimated from these (0: none).
    """

    command: tuple[str, ...]
    gpu: str | Path | Gpu = "a100"
    options: Options = field(default_factory=quiet_options)
    launch_steps: int = LAUNCH_STEPS
    total_steps: int = TOTAL_STEPS
    virtual_clock: bool = False
    build: tuple[str, ...] = ()
    choice: Choice = field(default_factory=Choice)
    keep: Path | None = None
    behind: bool = False
    check: bool = False
    devices: int = 1
    sampled: bool = False
    predictions: int = PREDICTIONS

    def plan(self, gpu: Gpu) -> Plan:
        """What is done with the launches of each process."""
        keeper = Keeper(self.keep, gpu) if self.keep else None
        behind = replace(self.options, brief=False, findings=True, occupancies=None) if self.behind else None
        steps = self.launch_steps, self.total_steps
        plan = Plan(self.options, *steps, self.choice, keeper, behind, self.check)
        return replace(plan, devices=self.devices, sampled=self.sampled, predictions=self.predictions)


def run_program(request: ProgramRequest) -> ProgramRun:
    """Run a program to its end, with its own input and output, and sum up what it did on the device.

    Raises UsageError for a command that cannot be started or a GPU that programs cannot see, ToolError if the library
    or the compiler is missing, InterruptedRunError on Ctrl-C.
    """
    gpu = request.gpu if isinstance(request.gpu, Gpu) else load_gpu(str(request.gpu))
    if gpu.is_amd or gpu.machine_code or not gpu.arch:
        raise UsageError(f"GPU {gpu.name}: drywarp run needs an NVIDIA GPU from Volta on")
    clock_mhz = gpu.device.clock_mhz(request.options.clock_mhz)
    check_clock(gpu, clock_mhz)
    if request.check and request.sampled:
        raise UsageError("--sampled cannot be combined with --check, which looks for faults in emulated launches")
    if request.keep:
        check_folder(request.keep)
    with _ended_as_interrupted(), scratch_folder("run") as folder:
        command = _built(request.command, gpu, folder, request.build)
        server = _Server(gpu, request, command[0])
        environment = _environment(server.name, folder) | ({_CLOCK_VARIABLE: "1"} if request.virtual_clock else {})
        status = server.serve(command, environment)
        done = server.processes
        own_code = holds_device_code(read_bytes(Path(command[0]), "a program"))
        # The runtime that a stripped program has inside reaches the driver, but registers nothing.
        inside = own_code and any(one.tables for one in done) and not any(one.modules for one in done)
        if not done or inside:
            raise UsageError(_why_nothing(command, status))
        return finished(request.command, status, server.processes, clock_mhz * 1e6)


@contextlib.contextmanager
def _ended_as_interrupted() -> Iterator[None]:
    """SIGTERM, and SIGHUP where it is not ignored, end the block as Ctrl-C does: nothing is left behind."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    # Only the main thread may; whoever calls this from another one ends it otherwise.
    main = threading.current_thread() is threading.main_thread()
    numbers = [signal.SIGTERM, signal.SIGHUP] if main else []
    before = {n: signal.signal(n, interrupt) for n in numbers if signal.getsignal(n) is not signal.SIG_IGN}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def check_folder(folder: Path) -> None:
    """Make the folder for kept launches. Raises UsageError if it cannot be made, or holds some already."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        held = any(folder.glob(f"*{SUFFIX}"))
    except OSError as error:
        raise UsageError(f"--keep {folder}: {error.strerror} (expected a folder, or a name for one)") from None
    if held:
        raise UsageError(f"--keep {folder}: holds launches of an earlier run (expected a new or an empty folder)")


def _linked(folder: Path, library: Path) -> Path:
    """The folder, with the library in it under each name that programs ask the loader for."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _NAMES:
        with contextlib.suppress(FileExistsError):
            (folder / name).symlink_to(library)
    return folder


def _environment(socket_name: str, spare: Path) -> dict[str, str]:
    """The program's environment: ours comes first wherever it looks for the runtime."""
    library = cuda_library()
    # Not in a folder of this run, which would remain if drywarp were killed.
    try:
        folder = _linked(cache_folder() / f"run-{hashlib.sha256(bytes(library)).hexdigest()[:16]}", library)
    except OSError:
        folder = _linked(spare, library)
    environment = dict(os.environ)
    for variable, entry in (("LD_PRELOAD", str(library)), ("LD_LIBRARY_PATH", str(folder))):
        environment[variable] = ":".join(filter(None, [entry, environment.get(variable, "")]))
    environment[_SOCKET_VARIABLE] = socket_name
    return environment


def _why_nothing(command: Sequence[str], status: int) -> str:
    """Why no CUDA call was intercepted."""
    ended = f"{command[0]} ended with status {status} without"
    return (
        f"{ended} a CUDA call that could be intercepted; expected a program that uses the driver or is linked to the "
        "shared runtime (nvcc -cudart shared), or one with the static runtime that keeps its symbols (not stripped)"
    )


def _built(command: tuple[str, ...], gpu: Gpu, folder: Path, build: tuple[str, ...]) -> tuple[str, ...]:
    """The command, with a CUDA source in the first place compiled to a program."""
    source = Path(command[0])
    is_source = source.suffix in (".cu", ".cuda")
    if build and not is_source:
        raise UsageError(f"{build[0]}: {source} is not built (expected a .cu file for compiler options)")
    if source.suffix == ".py" and source.is_file():
        return (sys.executable, *command)
    if not is_source:
        found = shutil.which(command[0])
        if found is None:
            raise UsageError(f"{command[0]}: no such program (expected an executable program, or a .cu file)")
        return (found, *command[1:])
    if not source.is_file():
        raise UsageError(f"{source}: no such file (expected a CUDA C++ source or a program)")
    words = [
        *_compiler(),
        "-O3",
        "-lineinfo",
        f"-arch={gpu.arch}",
        *build,
        "-o",
        str(folder / source.stem),
        str(source),
    ]
    # What nvcc leaves behind when it is killed lies in the folder of this run.
    made = subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ | {"TMPDIR": str(folder)})
    if made.returncode:
        said = next((line for line in made.stderr.splitlines() if "error" in line), made.stderr.strip())
        raise UsageError(f"{source}: nvcc rejected it: {said}")
    # `main.cu -- 8192` and `main.cu 8192` are the same: the source itself takes no options.
    return (str(folder / source.stem), *command[2 if command[1:2] == ("--",) else 1 :])


def _compiler() -> list[str]:
    """nvcc from the path, else from its package. Raises ToolError if there is none."""
    if found := shutil.which("nvcc"):
        return [found]
    with contextlib.suppress(ImportError):
        for place in import_module("nvidia.cu13").__path__:
            if (nvcc := Path(place) / "bin" / "nvcc").exists():
                return [str(nvcc), f"-L{Path(place) / 'lib'}"]
    raise ToolError("building a .cu file needs nvcc: on PATH, or pip install 'drywarp[ptx]' and a C++ compiler")


class _Stopped(BaseException):
    """The program has ended or was interrupted, and nobody waits for the launch that is being emulated."""


class _Server:
    """Accepts the connections of a program's processes, and serves each in a thread."""

    def __init__(self, gpu: Gpu, request: ProgramRequest, program: str) -> None:
        self._gpu, self._plan, self._program = gpu, request.plan(gpu), program
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.name = f"drywarp-{os.getpid()}-{secrets.token_hex(16)}"
        self._listener.bind(f"\0{self.name}")
        self._listener.listen()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._threads: list[threading.Thread] = []
        self._open: set[socket.socket] = set()
        self._failure: BaseException | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._stopping = False
        self.processes: list[ProcessRun] = []

    def serve(self, command: Sequence[str], environment: dict[str, str]) -> int:
        """Run the command; returns its exit status, 128 plus the number of a signal that ended it."""
        self._accepting.start()
        try:
            self._child = subprocess.Popen(command, env=environment)
        except OSError as error:
            raise UsageError(f"{command[0]}: {error.strerror} (expected a program)") from None

        try:
            with listening(self._go_on):
                status = self._child.wait()
                self._end_threads()
        except KeyboardInterrupt:
            self._end_threads()
            raise InterruptedRunError(self._interrupted()) from None
        finally:
            self._close()
        if self._failure is not None:
            raise self._failure
        return status if status >= 0 else 128 - status

    def _go_on(self, progress: Progress) -> None:
        """Called several times a second by every emulation."""
        if self._stopping:
            raise _Stopped

    def _end_threads(self) -> None:
        """Give processes that the program has left behind time to end; then stop emulations."""
        for _ in range(2):
            for thread in self._threads:
                thread.join(_LAST_WORDS_S / 4)
                if thread.is_alive() and thread.ident is not None:
                    # What predicts does not listen, and may take long.
                    raised = ctypes.c_ulong(thread.ident), ctypes.py_object(_Stopped)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(*raised)
                    thread.join(_LAST_WORDS_S)
                self._stopping = True

    def _interrupted(self) -> str:
        launches = sum(one.launched for one in self.processes)
        return f"interrupted after {launches} launches; the program was stopped"

    def _close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # which ends the thread that accepts
        self._listener.close()
        self._accepting.join(_LAST_WORDS_S)
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(_LAST_WORDS_S)
            self._child.kill()
            self._child.wait()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            if user != os.getuid():
                connection.close()
                continue
            self._open.add(connection)
            thread = threading.Thread(target=self._serve_until_stopped, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve_until_stopped(self, connection: socket.socket) -> None:
        with contextlib.suppress(_Stopped):
            self._serve_one(connection)

    def _serve_one(self, connection: socket.socket) -> None:
        """Answer one process until it ends."""
        device = Device(self._gpu, self._plan, self._program)
        self.processes.append(device.said)
        try:
            hello = struct.pack("<2q", START, device.heap.size)
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [device.heap.file]))]
            connection.sendmsg([hello], rights)
            for name, (*given, asking, thread), data in _requests(connection):
                device.asks(asking, thread)
                numbers = tuple(given)
                answer = device.answer(name, numbers, data)
                connection.sendall(_packed(answer, device.timeline.host, device.print_now(name, numbers)))
        except (OSError, _Stopped):
            pass  # the program has ended, or was ended
        except BaseException as error:
            self._failure = error
            if self._child is not None:
                self._child.kill()
        finally:
            self._open.discard(connection)
            connection.close()
            device.heap.close()


def _requests(connection: socket.socket) -> Iterator[tuple[str, tuple[int, ...], bytes]]:
    while head := _received(connection, _REQUEST.size):
        name, *numbers, size = _REQUEST.unpack(head)
        if size > _MOST_BYTES:
            return
        yield name.rstrip(b"\0").decode(), tuple(numbers), bytes(_received(connection, size)) if size else b""


def _received(connection: socket.socket, size: int) -> bytearray:
    """Exactly this many bytes; nothing if the other side has ended."""
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), 1 << 20))
        if not part:
            return bytearray()
        data += part
    return data


def _packed(answer: Answer, host_s: float, printed: bytes) -> bytes:
    values = (*answer.values, *[0] * (_VALUES - len(answer.values)))
    head = _REPLY.pack(answer.status, *values, round(host_s * 1e9), len(answer.data), len(printed))
    return head + answer.data + printed
