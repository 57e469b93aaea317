"""Profiler exports (Nsight Compute, rocprof): the measured metrics of each launch."""
