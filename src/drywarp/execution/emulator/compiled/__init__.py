"""The emulator's loop as machine code: most instructions, for all warps of a batch at once."""
