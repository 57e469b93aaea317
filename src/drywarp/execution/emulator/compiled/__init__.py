"""Most instructions as rows of numbers, which the core's loop runs for all warps of a batch at once."""
