"""nvcc as the last resort: with a stand-in for its plumbing, and with the real one where it is installed."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from drywarp.errors import CompileError, ToolError, UsageError
from drywarp.frontends.binary.module import load_module
from drywarp.frontends.cache import release_of
from drywarp.frontends.cuda import CudaOptions, build, nvcc
from drywarp.frontends.cuda.compile import compile_cuda, layouts_of
from drywarp.frontends.cuda.nvrtc import compile_program, gather
from drywarp.frontends.cuda.source import type_names
from tests.counting import no_hang

# What NVRTC cannot have: a class of the host's library inside a type that the kernel takes.
REFUSED = """#include <vector>
struct Box { std::vector<int> held; int a; };
template <int N, bool UP> __global__ void grow(float* x) { x[threadIdx.x] *= UP ? N : -N; }
__global__ void weigh(float* x, Box* box) { x[threadIdx.x] *= sizeof(box->held) + FACTOR; }
int main() { grow<4, true><<<1, 32>>>(nullptr); grow<5, false><<<1, 32>>>(nullptr); }
"""

MACHINE_CODE = """
template <int N, bool UP> __global__ void grow(float* x) { x[threadIdx.x] *= UP ? N : -N; }
template __global__ void grow<4, true>(float*);
struct Box; __global__ void weigh(float* x, Box* box) { x[threadIdx.x] *= 2; }
"""


def program(folder: Path, text: str) -> Path:
    path = folder / "nvcc"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An nvcc that copies its arguments beside it, and a CUBIN of NVRTC's to where it was told."""
    made = compile_program(MACHINE_CODE, "k.cu", ["--gpu-architecture=sm_80", "-lineinfo"]).cubin
    (tmp_path / "made.cubin").write_bytes(made)
    text = f"""
case "$1" in --version) echo "Cuda compilation tools, release 99.1, V99.1.7"; exit 0;; esac
printf '%s\\n' "$@" > {tmp_path}/arguments
while [ "$1" != -o ]; do case "$1" in *source.cu) cp "$1" {tmp_path}/seen.cu;; esac; shift; done
cp {tmp_path}/made.cubin "$2"
"""
    tool = program(tmp_path, text)
    monkeypatch.setenv(nvcc.VARIABLE, str(tool))
    return tool


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "box.cu"
    path.write_text(REFUSED)
    return path


def options() -> CudaOptions:
    return CudaOptions({"FACTOR": "3"}, ("/some/headers",), "c++17", 40)


def test_it_gets_what_the_user_said(stand_in: Path, source: Path) -> None:
    kernel = compile_cuda(source, arch="sm_80", entry="weigh", options=options())
    assert [(p.name, p.type) for p in kernel.parameters] == [("x", "float"), ("box", "Box")]
    given = (source.parent / "arguments").read_text().split("\n")
    for wanted in ("-cubin", "-arch=sm_80", "-lineinfo", "-DFACTOR=3", "-I/some/headers", "--std=c++17"):
        assert wanted in given
    assert "--maxrregcount=40" in given
    assert f"-I{source.parent.resolve()}" in given
    # Lines are those of the user's file.
    assert (source.parent / "seen.cu").read_text() == f'#line 1 "{source}"\n{REFUSED}'
    assert kernel.notes[0].startswith("compiled with nvcc 99.1.7, because NVRTC rejects it: ")


def test_templates_go_by_their_arguments(stand_in: Path, source: Path) -> None:
    module = load_module(source, arch="sm_80", options=options())
    assert module.compiler == "nvcc 99.1.7"
    assert sorted(k.name for k in module.kernels) == ["grow<4, true>", "weigh"]


def test_what_it_made_is_kept(stand_in: Path, source: Path) -> None:
    first = compile_cuda(source, arch="sm_80", entry="weigh", options=options())
    (source.parent / "made.cubin").unlink()
    again = compile_cuda(source, arch="sm_80", entry="weigh", options=options())
    assert again == first


def test_it_is_never_asked_for_what_nvrtc_takes(stand_in: Path, source: Path) -> None:
    compile_cuda("__global__ void fine(float* x) { x[0] = 1; }", arch="sm_80")
    assert not (source.parent / "arguments").exists()


def test_without_it_the_message_is_nvrtcs(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(nvcc.VARIABLE, "off")
    assert nvcc.find_nvcc() is None
    with pytest.raises(CompileError) as plain:
        compile_cuda(source, arch="sm_80", entry="weigh", options=options())
    refusing = program(tmp_path, 'echo "source.cu(3): error: something of its own" >&2; exit 1\n')
    monkeypatch.setenv(nvcc.VARIABLE, str(refusing))
    with pytest.raises(CompileError) as refused:
        compile_cuda(source, arch="sm_80", entry="weigh", options=options())
    # Both reasons are in the message, unless they are the same.
    assert str(refused.value).startswith(f"{plain.value}; nvcc")
    assert str(refused.value).endswith(": source.cu(3): error: something of its own")
    assert "something of its own" in refused.value.log
    assert "\n" not in str(refused.value)


def test_the_same_reason_is_given_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "typo.cu").write_text("__global__ void k(float* x) { x[0] = typo; }\n")
    agreeing = program(tmp_path, """echo 'typo.cu(1): error: identifier "typo" is undefined'; exit 1\n""")
    monkeypatch.setenv(nvcc.VARIABLE, str(agreeing))
    with pytest.raises(CompileError) as both:
        compile_cuda(tmp_path / "typo.cu", arch="sm_80")
    assert str(both.value) == f'{tmp_path}/typo.cu(1): error: identifier "typo" is undefined'
    assert both.value.log.count("identifier") == 2


def test_names_find_instances_with_defaults_and_other_spellings() -> None:
    symbols = [
        "_Z4growILi4EEvPf",
        "_Z4growILi4ELb1EEvPf",
        "_Z4halfI6__halfLi2EEvPT_",
        "_Z4halfI13__nv_bfloat16Li2EEvPT_",
    ]
    found = nvcc.expressions_of(
        symbols[1:], ["grow<4>", "half<half>", "half<__half, 2>", "half<nv_bfloat16>", "half<>"]
    )
    assert found == {
        "grow<4>": symbols[1],
        "half<half>": symbols[2],
        "half<__half, 2>": symbols[2],
        "half<nv_bfloat16>": symbols[3],
    }
    # The exact one goes before one with more arguments.
    assert nvcc.expressions_of(symbols, ["grow<4>"]) == {"grow<4>": symbols[0]}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_time_limit_ends_it_and_what_it_started(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = program(tmp_path, f"case $1 in --version) exit 0;; esac; sleep 100000 & echo $! > {tmp_path}/child; wait\n")
    monkeypatch.setenv(nvcc.VARIABLE, str(slow))
    translation = gather(REFUSED, str(source), source.parent, ())
    # On a busy machine a second may not be enough for it to start anything.
    for seconds in (1, 10, 100, 1000):
        with pytest.raises(ToolError, match=rf"^nvcc took longer than {seconds} s$"):
            nvcc.compile_with_nvcc(slow, translation, "sm_80", [], seconds=seconds)
        if (tmp_path / "child").exists() and (tmp_path / "child").read_text().endswith("\n"):
            break
    child = int((tmp_path / "child").read_text())
    with no_hang():
        while alive(child):
            time.sleep(0.01)
    # The user reads of it behind NVRTC's own message.
    made = nvcc.compile_with_nvcc
    monkeypatch.setattr(build, "compile_with_nvcc", lambda *_: made(*_, seconds=1))
    with pytest.raises(CompileError, match=r"^\S+: error: .* \(nvcc took longer than 1 s\)$"):
        compile_cuda(source, arch="sm_80", entry="weigh", options=options())


@pytest.mark.parametrize("name", ["nowhere", "plain.txt", "."])
def test_a_wrong_name_is_told(name: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain.txt").write_text("no program")
    monkeypatch.setenv(nvcc.VARIABLE, str(tmp_path / name))
    with pytest.raises(ToolError, match=r"^DRYWARP_NVCC=.*: no such program \(expected the path of an nvcc, or off\)$"):
        compile_cuda(source, arch="sm_80", entry="weigh", options=options())


def test_places_are_tried_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(nvcc.VARIABLE)
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (tmp_path / "path").mkdir()
    on_path = program(tmp_path / "path", "exit 1\n")
    monkeypatch.setenv("PATH", str(tmp_path / "path") + os.pathsep + os.environ["PATH"])
    monkeypatch.setenv("CUDA_HOME", str(home))
    assert nvcc.find_nvcc() == on_path
    at_home = program(home / "bin", "exit 1\n")
    assert nvcc.find_nvcc() == at_home


@pytest.mark.parametrize(
    ("signature", "name"),
    [
        ("void grow<(int)4, (bool)1>(float*)", "grow<4,1>"),
        ("saxpy(int, float, float*)", "saxpy"),
        ("void a::b<float, 2u>(a::t<int>*)", "a::b<float,2>"),
        ("std::pair<int, int> f<(unsigned int)8>(int (*)(int))", "f<8>"),
        ("plain_symbol", "plain_symbol"),
        ("void (anonymous namespace)::hidden(int)", "(anonymousnamespace)::hidden"),
    ],
)
def test_signatures_become_names(signature: str, name: str) -> None:
    assert nvcc.plain_name(signature) == name


def test_the_real_one(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(nvcc.VARIABLE)
    tool = nvcc.find_nvcc()
    if tool is None:
        pytest.skip("nvcc is not installed here; the tests above use a stand-in")
    if not release_of(tool):
        pytest.skip(f"{tool} cannot be run")
    try:
        module = load_module(source, arch="sm_80", options=CudaOptions({"FACTOR": "3"}))
    except CompileError as error:
        if "cannot find the host compiler" in error.log or "No such file" in error.log:
            pytest.skip("nvcc has no host compiler here")
        raise
    (weigh,) = [k for k in module.kernels if k.name == "weigh"]
    assert {i.source.line for i in weigh.instructions if i.source} == {4}
    assert {i.source.file for i in weigh.instructions if i.source} == {str(source)}
    assert weigh.resources.spill_bytes == 0


ALIASED = """
template <int N> struct Tile { struct Params { int n; float* at; }; };
template <typename T> struct Outer { using Inner = Tile<T::size>; };
struct Eight { static const int size = 8; };
using Plain = Tile<4>;
using Member = Outer<Eight>::Inner;
template <typename K> __global__ void run(typename K::Params p) { p.at[p.n] = 1; }
"""


def test_arguments_may_be_aliases() -> None:
    known = ["_Z3runI4TileILi4EEEvNT_6ParamsE", "_Z3runI4TileILi8EEEvNT_6ParamsE", "_Z3runIiEvNT_6ParamsE"]
    aliases = {"Plain": "Tile<4>", "Alias": "Plain", "Member": "Outer<Eight>::Inner"}
    assert nvcc.expressions_of(known, ["run<Plain>"], aliases) == {"run<Plain>": known[0]}
    assert nvcc.expressions_of(known, ["run<Alias>"], aliases) == {"run<Alias>": known[0]}
    # The text does not tell what a member of a class is: that is settled only if there is a single instance.
    assert nvcc.expressions_of(known, ["run<Member>"], aliases) == {}
    assert nvcc.expressions_of(known[1:2], ["run<Member>"], aliases) == {"run<Member>": known[1]}
    # What is no alias means what it says.
    assert nvcc.expressions_of(known[1:2], ["run<float>"], aliases) == {}


def test_symbols_that_the_demangler_does_not_read_go_by_their_template() -> None:
    unread = "_ZN3lib6KernelINS_4NoneIS99_EEEEvNT_6ParamsE"
    found = nvcc.expressions_of([unread], ["lib::Kernel<K>", "lib::Other<K>"], {"K": "G::Kernel"})
    assert found == {"lib::Kernel<K>": unread}


def test_the_only_instance_goes_by_its_templates_name(tmp_path: Path) -> None:
    path = tmp_path / "alias.cu"
    path.write_text(ALIASED + "template __global__ void run<Member>(Member::Params);\n")
    by_name = compile_cuda(path, arch="sm_80", entry="run")
    assert by_name.symbol == compile_cuda(path, arch="sm_80", entry="run<Member>").symbol
    assert [(p.name, p.size) for p in by_name.parameters] == [("p", 16)]
    # Two instances need their arguments.
    path.write_text(path.read_text() + "template __global__ void run<Plain>(Plain::Params);\n")
    with pytest.raises(UsageError, match="run is a template; give its arguments"):
        compile_cuda(path, arch="sm_80", entry="run")


def test_headers_that_pips_nvcc_lacks_are_searched_last(stand_in: Path, source: Path) -> None:
    compile_cuda(source, arch="sm_80", entry="weigh", options=options())
    given = (source.parent / "arguments").read_text().split("\n")
    stand_ins = [n for n, word in enumerate(given) if word.startswith("-isystem=")]
    assert (Path(given[stand_ins[0]].partition("=")[2]) / "nv" / "target").is_file()
    assert (Path(given[stand_ins[1]].partition("=")[2]) / "curand_kernel.h").is_file()
    assert stand_ins[0] > max(n for n, word in enumerate(given) if word.startswith("-I"))


SPELT = """#include <cuda_fp16.h>
#include <cstdint>
namespace ns { typedef uint64_t key_t; using Own = float; enum class Mode : int { A, B }; }
template <typename T, int N> __global__ void count(T* a) { a[threadIdx.x] = a[threadIdx.x] + (T)N; }
template <typename K, typename V> __global__ void pairs(K* k, V* v) { k[threadIdx.x] += (K)v[threadIdx.x]; }
template <ns::Mode M> __global__ void mode(float* a) { a[threadIdx.x] += (int)M; }
"""


@pytest.mark.parametrize(
    ("spellings", "symbol"),
    [
        (["uint64_t", "unsigned long", "unsigned long long", "size_t", "std::uint64_t", "long unsigned int"], "m"),
        (["int8_t", "signed char", "::int8_t"], "a"),
        (["uint32_t", "unsigned", "unsigned int"], "j"),
        (["short", "int16_t", "short int", "signed short"], "s"),
        (["half", "__half"], "6__half"),
    ],
)
def test_types_of_one_meaning_name_one_instance(spellings: list[str], symbol: str) -> None:
    others = [other for other in ("m", "a", "j", "s", "6__half", "f", "x") if other != symbol]
    known = [f"_Z5countI{one}Li3EEvPT_" for one in (symbol, *others)]
    for spelling in spellings:
        assert nvcc.expressions_of(known, [f"count<{spelling}, 3>"]) == {f"count<{spelling}, 3>": known[0]}
        assert nvcc.expressions_of(known, [f"count<{spelling}, 4>"]) == {}


def test_the_exact_spelling_goes_before_one_of_the_same_size() -> None:
    known = ["_Z5countIlLi3EEvPT_", "_Z5countIxLi3EEvPT_"]
    assert nvcc.expressions_of(known, ["count<long, 3>"]) == {"count<long, 3>": known[0]}
    assert nvcc.expressions_of(known, ["count<long long, 3>"]) == {"count<long long, 3>": known[1]}
    assert nvcc.expressions_of(known, ["count<int64_t, 3>"]) == {"count<int64_t, 3>": known[0]}


def test_aliases_in_namespaces_and_enumerators_name_an_instance() -> None:
    known = ["_Z5pairsImfEvPT_PT0_", "_Z5pairsIjfEvPT_PT0_", "_Z4modeILN2ns4ModeE1EEvPf"]
    aliases = type_names([SPELT])
    names = ["pairs<ns::key_t, ns::Own>", "pairs<uint32_t, ns::Own>", "mode<ns::Mode::B>"]
    assert nvcc.expressions_of(known, names, aliases) == dict(zip(names, known, strict=True))
    # Of two enumerators the text does not settle which is meant.
    assert nvcc.expressions_of([*known, "_Z4modeILN2ns4ModeE0EEvPf"], names[2:], aliases) == {}


def test_what_nvrtc_rejects_is_built_once_more_for_all_layouts(
    stand_in: Path, source: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = [compile_cuda(source, arch="sm_80", entry=name, options=options()) for name in ("grow<4, true>", "weigh")]
    debug = compile_program(MACHINE_CODE, "k.cu", ["--gpu-architecture=sm_80", "--device-debug"]).cubin
    (stand_in.parent / "made.cubin").write_bytes(debug)

    def never(*arguments: object) -> None:
        raise AssertionError("NVRTC is asked again")

    monkeypatch.setattr(build, "compile_program", never)
    asked = stand_in.parent / "arguments"
    asked.unlink()
    layouts_of(source, "sm_80", "grow<4, true>", options(), kernels[0])
    assert "-G" in asked.read_text().splitlines()
    asked.unlink()
    layouts_of(source, "sm_80", "weigh", options(), kernels[1])
    assert not asked.exists()


def test_a_build_for_layouts_that_fails_is_not_tried_for_each_kernel(
    stand_in: Path, source: Path, own_cache: Path
) -> None:
    names = ("grow<4, true>", "weigh")
    kernels = [compile_cuda(source, arch="sm_80", entry=name, options=options()) for name in names]
    program(stand_in.parent, f"echo once >> {stand_in.parent}/tries; exit 1")
    for name, kernel in zip(names, kernels, strict=True):
        with pytest.raises(CompileError):
            layouts_of(source, "sm_80", name, options(), kernel)
    assert (stand_in.parent / "tries").read_text().splitlines().count("once") <= 2  # a version, and a build
