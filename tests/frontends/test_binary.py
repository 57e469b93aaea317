"""Machine code as input: CUBINs, fat binaries and executables, good, foreign and damaged."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import lz4.block
import pytest
import zstandard

from drywarp.errors import DrywarpError, InputFileError, ToolError, UsageError
from drywarp.frontends.binary import containers as fatbin
from drywarp.frontends.binary.containers import architecture, load_binary
from drywarp.frontends.cuda.nvrtc import compile_program
from drywarp.frontends.load import load_kernel
from drywarp.frontends.loaded import chosen, entry_names

SOURCE = """
__global__ void scale(float* a, float by, int n) { int i = threadIdx.x; if (i < n) a[i] *= by; }
template <int N> __global__ void shift(float* a) { a[threadIdx.x] += N; }
template __global__ void shift<1>(float*);
template __global__ void shift<2>(float*);
"""


def cubin(arch: str, source: str = SOURCE) -> bytes:
    return compile_program(source, "k.cu", [f"--gpu-architecture={arch}", "-lineinfo"]).cubin


def container(*entries: tuple[int, int, int, bytes]) -> bytes:
    """A fat binary of (kind, sm, flags, packed bytes), laid out as the compiler driver does."""
    body = b""
    for kind, sm, flags, packed in entries:
        stored = packed + bytes(-len(packed) % 8)
        size = len(CUBIN_80) if flags else 0
        body += struct.pack("<HHIQI", kind, 0x101, 64, len(stored), len(packed) if flags else 0)
        body += struct.pack("<IHHI", 0, 8, 1, sm).ljust(20, b"\0") + struct.pack("<QQQ", flags, 0, size) + stored
    return struct.pack("<IHHQ", fatbin.MAGIC, 1, 16, len(body)) + body


def host_elf(section: bytes) -> bytes:
    """The least x86-64 ELF file with a section .nv_fatbin."""
    names = b"\0.nv_fatbin\0.shstrtab\0"
    data = section + bytes(-len(section) % 8)
    padded = names + bytes(-len(names) % 8)
    offset = 64 + len(data) + len(padded)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 0, offset, 0, 64, 56, 0, 64, 3, 2)
    table = bytes(64)
    table += struct.pack("<IIQQQQIIQQ", 1, 1, 2, 0, 64, len(section), 0, 0, 8, 0)
    table += struct.pack("<IIQQQQIIQQ", 12, 3, 0, 0, 64 + len(data), len(names), 0, 0, 1, 0)
    return header + data + padded + table


CUBIN_80, CUBIN_90 = cubin("sm_80"), cubin("sm_90")


def written(tmp_path: Path, data: bytes, name: str = "file.bin") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def load(tmp_path: Path, data: bytes, arch: str = "sm_80", entry: str | None = "scale") -> object:
    return load_binary(written(tmp_path, data), data, arch=arch, entry=entry)


@pytest.mark.parametrize(("data", "number"), [(CUBIN_80, 80), (CUBIN_90, 90)])
def test_architecture_of_a_cubin(data: bytes, number: int) -> None:
    assert architecture(data, "f") == number


def test_a_cubin_gives_the_kernel_that_its_source_gives(tmp_path: Path) -> None:
    path = written(tmp_path, CUBIN_80)
    kernel, comment = load_kernel(path, arch="sm_80", entry="scale")
    compiled, _ = load_kernel(SOURCE, arch="sm_80", entry="scale")
    assert [i.text for i in kernel.instructions] == [i.text for i in compiled.instructions]
    assert kernel.resources.registers == compiled.resources.registers
    assert kernel.resources.spill_bytes is None
    assert [p.size for p in kernel.parameters] == [8, 4, 4]
    assert comment.grid is None
    assert any(i.source and i.source.file.endswith("k.cu") for i in kernel.instructions)


@pytest.mark.parametrize(
    ("flags", "pack"),
    [
        (0, lambda d: d),
        (0x8000, lambda d: zstandard.ZstdCompressor().compress(d)),
        (0x2000, lambda d: lz4.block.compress(d, store_size=False)),
    ],
    ids=["plain", "zstd", "lz4"],
)
def test_fat_binaries_hold_machine_code_packed_or_not(tmp_path: Path, flags: int, pack: object) -> None:
    data = container((1, 90, 0, b"ptx text"), (2, 80, flags, pack(CUBIN_80)), (2, 90, 0, CUBIN_90))  # type: ignore[operator]
    assert load(tmp_path, data, "sm_80").arch == "sm_80"  # type: ignore[attr-defined]
    assert load(tmp_path, data, "sm_90").arch == "sm_90"  # type: ignore[attr-defined]
    assert load(tmp_path, data, "sm_86").arch == "sm_80"  # type: ignore[attr-defined]
    with pytest.raises(
        UsageError, match=r"no machine code that runs on sm_75 \(it holds: sm_80, sm_90, PTX for sm_90\)"
    ):
        load(tmp_path, data, "sm_75")


def test_executables_hold_fat_binaries(tmp_path: Path) -> None:
    data = host_elf(container((2, 80, 0, CUBIN_80)) + bytes(8) + container((2, 80, 0, cubin("sm_80", OTHER))))
    assert load(tmp_path, data).name == "scale"  # type: ignore[attr-defined]
    assert load(tmp_path, data, entry="other").name == "other"  # type: ignore[attr-defined]


OTHER = "__global__ void other(int* a) { *a = 1; }"


def test_instances_of_a_template_are_told_apart_by_their_arguments(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"several kernels; name one with --entry: scale, shift<1>, shift<2>$"):
        load(tmp_path, CUBIN_80, entry=None)
    with pytest.raises(UsageError, match=r"shift is ambiguous; name one with --entry: shift<1>, shift<2>$"):
        load(tmp_path, CUBIN_80, entry="shift")
    assert load(tmp_path, CUBIN_80, entry="shift< 2 >").symbol == "_Z5shiftILi2EEvPf"  # type: ignore[attr-defined]
    assert load(tmp_path, CUBIN_80, entry="_Z5shiftILi2EEvPf").symbol == "_Z5shiftILi2EEvPf"  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match=r"no kernel named 'nothing'; it holds: scale, shift<1>"):
        load(tmp_path, CUBIN_80, entry="nothing")


def test_names_are_as_short_as_they_can_be_and_long_lists_end() -> None:
    symbols = ["_Z5scalePfi", "_Z5shiftILi1EEvPf", "_Z5shiftILj2EEvPf", "_Z3addPf", "_Z3addPd", "plain"]
    assert list(entry_names(symbols).values()) == [
        "scale", "shift<1>", "shift<2u>", "_Z3addPf", "_Z3addPd", "plain"
    ]  # fmt: skip
    held = {f"kernel_of_the_file_{n:02}": None for n in range(400)}
    with pytest.raises(UsageError, match=r"--entry: 400 kernels in f, which drywarp list shows; the first: "):
        chosen(held, None, "f")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (CUBIN_80[:2000], "truncated or damaged ELF file"),
        (CUBIN_80[:30], "truncated or damaged ELF file"),
        (host_elf(b""), "no machine code that runs on sm_80"),
        (host_elf(container((2, 80, 0, CUBIN_80)))[:5000], "truncated or damaged ELF file"),
        (container((2, 80, 0, CUBIN_80))[:500], "truncated fat binary"),
        (container((2, 80, 0x8000, b"not zstd at all")), "damaged compressed machine code"),
        (container((2, 80, 0x2000, b"not lz4")), "damaged compressed machine code"),
        (container((1, 80, 0, b"no text of ptx")), "damaged PTX in a fat binary"),
        (container((1, 90, 0, b".version 8.0")), "it holds: PTX for sm_90"),
        (CUBIN_80[:48] + struct.pack("<I", 0x01000104) + CUBIN_80[52:], "unknown architecture"),
    ],
    ids=range(10),
)
def test_bad_files_are_one_line(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises((InputFileError, UsageError), match=r"file\.bin: ") as caught:
        load(tmp_path, data)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_packages_say_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name, flag in (("zstandard", 0x8000), ("lz4.block", 0x2000)):
        monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.setitem(sys.modules, name.split(".")[0], None)
        with pytest.raises(ToolError, match=r"pip install 'drywarp\[binaries\]'"):
            load(tmp_path, container((2, 80, flag, b"x")))


def test_neither_text_nor_machine_code(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="neither text nor CUDA machine code"):
        load_kernel(written(tmp_path, b"\x00\xff\xfe\x80 binary"), arch="sm_80")
    with pytest.raises(DrywarpError, match=r"no CUDA machine code in this ELF file|truncated"):
        load(tmp_path, host_elf(b"").replace(b".nv_fatbin", b".xx_fatbin"))


def test_what_nvcc_writes(tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not installed here; the containers above are made by hand")
    (tmp_path / "k.cu").write_text(SOURCE + "int main() { scale<<<1, 32>>>(nullptr, 1.0f, 0); }\n")
    command = [nvcc, "-arch=sm_80", "-compress-mode", "size", "-o", "program", "k.cu"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"nvcc cannot build here: {made.stderr.strip()[:100]}")
    path = tmp_path / "program"
    assert load_binary(path, path.read_bytes(), arch="sm_80", entry="scale").parameters[1].size == 4


PTX = (Path(__file__).parents[2] / "examples" / "axpy.ptx").read_text()


def ptx_for(number: int) -> bytes:
    return PTX.replace("sm_70", f"sm_{number}").replace(".version 7.0", ".version 8.0").encode() + b"\0"


def test_ptx_is_assembled_where_no_machine_code_runs(tmp_path: Path) -> None:
    packed = zstandard.ZstdCompressor().compress(ptx_for(75))
    data = container((1, 75, 0, ptx_for(75)), (1, 90, 0, ptx_for(90)), (2, 90, 0, CUBIN_90))
    assembled = load(tmp_path, data, "sm_80", entry="axpy")
    assert assembled.arch == "sm_80"  # type: ignore[attr-defined]
    assert [p.name for p in assembled.parameters] == ["x", "y", "a", "n"]  # type: ignore[attr-defined]
    # Machine code goes before PTX.
    assert load(tmp_path, data, "sm_90").name == "scale"  # type: ignore[attr-defined]
    assert len(packed) < len(ptx_for(75))
    with pytest.raises(UsageError, match=r"no kernel named 'scale'; it holds: axpy"):
        load(tmp_path, host_elf(data), "sm_80")


def test_compressed_ptx(tmp_path: Path) -> None:
    text = ptx_for(75)
    packed = zstandard.ZstdCompressor().compress(text)
    stored = packed + bytes(-len(packed) % 8)
    entry = struct.pack("<HHIQI", 1, 0x101, 64, len(stored), len(packed))
    entry += struct.pack("<IHHI", 0, 8, 1, 75).ljust(20, b"\0") + struct.pack("<QQQ", 0x8000, 0, len(text)) + stored
    data = struct.pack("<IHHQ", fatbin.MAGIC, 1, 16, len(entry)) + entry
    assert load(tmp_path, data, "sm_86", entry=None).arch == "sm_86"  # type: ignore[attr-defined]
