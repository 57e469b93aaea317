"""What-ifs that compile, emulate and bind the kernel anew: nothing in them is guessed."""
