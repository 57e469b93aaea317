"""Kernels for the tests: the committed assembly, and a few lines of it wrapped up as a whole kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from drywarp.frontends.amd.code import kernels_of
from drywarp.kernel.kernel import Kernel

FOLDER = Path(__file__).parent / "assembly"

WRAPPED = """\
	.amdgcn_target "amdgcn-amd-amdhsa--{arch}"
	.text
k:
{body}
	s_endpgm
	.amdhsa_kernel k
{directives}
	.end_amdhsa_kernel
	.amdgpu_metadata
amdhsa.kernels:
  - .args:
{arguments}
    .group_segment_fixed_size: {lds}
    .max_flat_workgroup_size: 1024
    .name:           k
    .private_segment_fixed_size: 0
    .sgpr_count:     {sgprs}
    .symbol:         k.kd
    .vgpr_count:     {vgprs}
    .wavefront_size: 64
	.end_amdgpu_metadata
"""
DIRECTIVES = (
    "user_sgpr_kernarg_segment_ptr 1",
    "user_sgpr_count 2",
    "system_sgpr_workgroup_id_x 1",
    "system_vgpr_workitem_id 0",
)


def committed(name: str) -> Kernel:
    """The kernel of `assembly/NAME.s`, as in ``saxpy-gfx90a``."""
    path = FOLDER / f"{name}.s"
    (kernel,) = kernels_of(path.read_text(), str(path)).values()
    return kernel


def all_committed() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.s"))


def wrapped(
    body: str, arch: str = "gfx90a", buffers: Sequence[str] = ("p",), vgprs: int = 8, sgprs: int = 16, lds: int = 0
) -> str:
    """Assembly of a kernel `k` that takes pointers in s[0:1]; its group's number is in s2."""
    lines = "\n".join(line if line.endswith(":") else f"\t{line}" for line in body.strip().splitlines())
    arguments = "\n".join(
        f"      - .name:           {name}\n        .offset:         {8 * n}\n        .size:           8\n"
        f"        .address_space:  global\n        .value_kind:     global_buffer"
        for n, name in enumerate(buffers)
    )
    directives = "\n".join(f"\t\t.amdhsa_{text}" for text in DIRECTIVES)
    return WRAPPED.format(
        arch=arch, body=lines, directives=directives, arguments=arguments, lds=lds, sgprs=sgprs, vgprs=vgprs
    )


def kernel_of(body: str, arch: str = "gfx90a", **more: object) -> Kernel:
    """The kernel that a few lines make."""
    return kernels_of(wrapped(body, arch, **more), "k.s")["k"]  # type: ignore[arg-type]
