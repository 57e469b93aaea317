"""Where a warp of an AMD GPU may go after an instruction."""

from __future__ import annotations

_CONDITIONAL = "s_cbranch_"
_ENDS = ("s_endpgm", "s_setpc_b64", "s_rfe_b64")
_CALLS = ("s_swappc_b64", "s_call_b64")


def ends_block(opcode: str) -> bool:
    """Whether the warp may leave the line, or wait for others, after this instruction."""
    return opcode.startswith((_CONDITIONAL, *_ENDS, *_CALLS)) or opcode in ("s_branch", "s_barrier")


def is_jump(opcode: str) -> bool:
    """Whether its label says where it goes."""
    return opcode == "s_branch" or opcode.startswith(_CONDITIONAL)


def falls_through(opcode: str) -> bool:
    """Whether the next instruction in the line may follow: a call comes back to it."""
    return opcode != "s_branch" and not opcode.startswith(_ENDS)
