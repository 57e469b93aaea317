"""A kernel as machine code: the one form that every frontend delivers and every later room reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .instruction import Instruction


@dataclass(frozen=True, slots=True)
class Parameter:
    """One kernel parameter. `offset` counts from the start of the parameters, `size` in bytes.

    `name` and `type` come from the source and are empty where there is none (a bare cubin); `type` is
    the C++ spelling without qualifiers, `pointer` says whether it is an address, and `space` of which memory:
    ``shared`` for OpenCL's pointers to local memory, whose buffers lie in each block's shared memory.
    """

    ordinal: int
    offset: int
    size: int
    name: str = ""
    type: str = ""
    pointer: bool = False
    space: str = "global"


@dataclass(frozen=True, slots=True)
class Resources:
    """What one thread or thread block of the kernel takes, as the compiler allotted it.

    `registers` per thread; `shared_bytes` static shared memory per block without the driver's
    reserve (`shared_reserved` holds that where the machine code addresses around it); `local_bytes`
    stack frame per thread; `spill_bytes` spill stores plus loads per thread, as the compiler reports
    them, None where no compiler log exists; `max_threads` of `__launch_bounds__`, 0 if none; `cluster` the
    blocks of a cluster in x, y and z, of `__cluster_dims__`. `scalar_registers` per warp, 0 where the
    architecture has none.
    """

    registers: int
    shared_bytes: int
    shared_reserved: int = 0
    local_bytes: int = 0
    spill_bytes: int | None = None
    barriers: int = 0
    max_threads: int = 0
    cluster: tuple[int, int, int] = (1, 1, 1)
    scalar_registers: int = 0


@dataclass(frozen=True, slots=True)
class Relocation:
    """A 64-bit word in a constant bank that holds the address of a `__device__` variable.

    `image_offset` counts from the start of the kernel's global image (`Kernel.global_image`).
    """

    bank: int
    offset: int
    image_offset: int


@dataclass(frozen=True, slots=True)
class External:
    """A 64-bit word in a constant bank that holds the address of a function which the driver brings."""

    bank: int
    offset: int
    name: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named place: `space` is ``constant`` (bank 3), ``global``, ``shared`` or ``code``.

    `type` is the C++ type of a `__constant__` variable where the source declares it, with ``[]`` behind
    that of an array's elements; empty where it is not known.
    """

    space: str
    offset: int
    size: int
    type: str = ""


@dataclass(frozen=True)
class Kernel:
    """Machine code of one kernel with everything that running it needs.

    `arch` as in ``sm_80`` or ``gfx90a``; `name` as a user writes it, `symbol` as the file spells it. `instructions`
    are in address order, 16 bytes apart, padding after the last reachable one left out.
    `constant_banks` maps bank number to initial bytes; bank 0 is made at launch, with the parameters
    at `parameter_base`. `global_image` holds the module's `__device__` variables. `externals` are
    functions that the code calls without holding them, as `vprintf`. An assembly listing without
    addresses is numbered as if its instructions were 16 bytes long.
    """

    name: str
    symbol: str
    arch: str
    instructions: tuple[Instruction, ...]
    parameters: tuple[Parameter, ...]
    parameter_base: int
    resources: Resources
    constant_banks: Mapping[int, bytes] = field(default_factory=dict)
    global_image: bytes = b""
    relocations: tuple[Relocation, ...] = ()
    symbols: Mapping[str, Symbol] = field(default_factory=dict)
    externals: tuple[External, ...] = ()
    source_file: str = ""
    warp_size: int = 32
    abi: Mapping[str, int] = field(default_factory=dict)
    """What an AMD kernel finds in its registers at the start, and where: see `frontends.amdgcn_metadata`."""
    notes: tuple[str, ...] = ()
    """What an answer about the kernel has to say with it."""

    @property
    def compute_capability(self) -> tuple[int, int]:
        """(major, minor) of `arch`."""
        digits = "".join(c for c in self.arch.removeprefix("sm_") if c.isdigit())
        return int(digits[:-1]), int(digits[-1])

    @property
    def code_entries(self) -> list[int]:
        """Offsets of functions in the kernel's section, which computed calls may reach."""
        return [symbol.offset for symbol in self.symbols.values() if symbol.space == "code"]

    def index_of(self, pc: int) -> int:
        """Index in `instructions` of the instruction at byte offset `pc`."""
        return pc // 16
