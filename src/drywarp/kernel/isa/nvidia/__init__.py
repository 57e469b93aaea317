"""NVIDIA's instruction set (SASS): classes of opcodes, registers read and written, operands of textures."""
