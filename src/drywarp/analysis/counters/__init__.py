"""What a profiler would count: an emulated kernel's counters under Nsight Compute's metric names."""
