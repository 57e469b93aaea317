"""What runs in C: the inner loops of emulation, memory phase and simulation; how they are built and called."""
