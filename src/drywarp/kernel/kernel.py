"""A kernel as machine code: the common form that every frontend delivers and all later packages read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .instruction import Instruction
from .launch.layout import Layout


@dataclass(frozen=True, slots=True)
class Parameter:
    """One kernel parameter. `offset` (from the start of the parameters) and `size` are in bytes.

    `name` and `type` come from the source and are empty if there is none (a bare CUBIN). `type` is the C++ type without
    qualifiers; `pointer` tells whether the parameter is an address, and `space` into which memory: ``shared`` for
    OpenCL's pointers to local memory, whose buffers are in each block's shared memory. `layout` tells where its fields
    lie, None if that has not been looked up.
    """

    ordinal: int
    offset: int
    size: int
    name: str = ""
    type: str = ""
    pointer: bool = False
    space: str = "global"
    layout: Layout | None = None


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources of one thread or thread block of the kernel, as allocated by the compiler.

    `registers` per thread; `shared_bytes`: static shared memory per block without the driver's reserve
    (`shared_reserved` is the reserve if the machine code addresses around it); `local_bytes`: stack frame per thread;
    `spill_bytes`: spill stores plus loads per thread as reported by the compiler, None without a compiler log;
    `max_threads` from `__launch_bounds__`, 0 if none; `cluster`: blocks per cluster in x, y and z, from
    `__cluster_dims__`; `scalar_registers` per warp, 0 if the architecture has none; `tensor_columns`: the most columns
    of tensor memory that a block holds, which only a run shows.
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
    tensor_columns: int = 0


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
    """A 64-bit word in a constant bank that holds the address of a function provided by the driver."""

    bank: int
    offset: int
    name: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named location: `space` is ``constant`` (bank 3), ``global``, ``shared`` or ``code``.

    `type` is the C++ type of a `__constant__` or `__device__` variable declared in the source; for an array, the
    element type followed by ``[]``. Empty if unknown. `layout` is as in `Parameter`.
    """

    space: str
    offset: int
    size: int
    type: str = ""
    layout: Layout | None = None


@dataclass(frozen=True)
class Kernel:
    """Machine code of one kernel with everything needed to run it.

    `arch` as in ``sm_80`` or ``gfx90a``; `name` as a user writes it, `symbol` as the file spells it. `instructions` are
    in address order, 16 bytes apart, without padding after the last reachable one. `constant_banks` maps bank numbers
    to initial bytes; bank 0 is created at launch, with the parameters at `parameter_base`. `global_image` holds the
    module's `__device__` variables. `externals` are functions that the code calls but does not contain, such as
    `vprintf`. An assembly listing without addresses is numbered as if its instructions were 16 bytes long.
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
    """Initial register contents of an AMD kernel, and their positions: see `frontends.amd.metadata`."""
    notes: tuple[str, ...] = ()
    """Notes to show with any result for the kernel."""

    @property
    def compute_capability(self) -> tuple[int, int]:
        """(major, minor) of `arch`."""
        digits = "".join(c for c in self.arch.removeprefix("sm_") if c.isdigit())
        return int(digits[:-1]), int(digits[-1])

    @property
    def code_entries(self) -> list[int]:
        """Offsets of the functions in the kernel's section that computed calls may reach."""
        return [symbol.offset for symbol in self.symbols.values() if symbol.space == "code"]

    def with_tensor_use(self, products: Mapping[int, tuple[str, ...]], columns: int) -> Kernel:
        """The kernel with what only a run shows of its use of tensor memory.

        `products` are what matrix instructions take from a register, by index: shape, element type, ``SP`` if sparse;
        these become modifiers, as other matrix instructions have them.
        """
        if not products and not columns:
            return self
        code = list(self.instructions)
        for index, stated in products.items():
            bare = [m for m in code[index].modifiers if m not in stated]
            code[index] = replace(code[index], modifiers=(*bare, *stated))
        return replace(self, instructions=tuple(code), resources=replace(self.resources, tensor_columns=columns))
