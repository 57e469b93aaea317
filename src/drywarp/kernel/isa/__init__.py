"""What does each opcode mean? One folder per vendor."""
