"""What runs in C: the inner loops of the simulation and of the memory phase, and how they are built and called."""
