"""Threads that hide memory latency on coarse-grained multithreaded processors, and how far to prefetch.

Volkov, "Understanding latency hiding on GPUs" (2016), §4.9, after Agarwal, "Performance tradeoffs in
multithreaded processors" (1989), §2, Saavedra-Barrera, Culler and von Eicken, "Analysis of multithreaded
architectures for parallel computing" (1990), Eq. 4, and Mowry, Lam and Gupta, "Design and evaluation of a compiler
algorithm for prefetching" (1992), in the thesis's notation. Units: cycles, threads, iterations. A thread runs R
cycles until it waits L cycles for memory; a switch of threads costs C. Assumed: threads switch only when
they wait for memory. Left out: arithmetic latency, bandwidth; throughput with fewer threads, which the
thesis does not print. Results are not rounded up.
"""

from __future__ import annotations


def agarwal(run: float, latency: float, switch: float = 0.0) -> float:
    """(R + L) / (R + C): a stall overlaps n − 1 threads and n switches, (n − 1) · R + n · C ≥ L."""
    return (run + latency) / (run + switch)


def saavedra_barrera(run: float, latency: float, switch: float = 0.0) -> float:
    """L / (R + C) + 1: a stall overlaps n − 1 threads and n − 1 switches, (n − 1) · (R + C) ≥ L."""
    return latency / (run + switch) + 1


def run_cycles(alpha: float, instruction_time: float) -> float:
    """R = (α + 1) · instruction time: on a GPU, with C = 0 and arithmetic latency ignored."""
    return (alpha + 1) * instruction_time


def prefetch_distance(latency: float, iteration: float) -> float:
    """l / s: iterations to prefetch ahead, with s instructions of one cycle in an iteration (Mowry et al.)."""
    return latency / iteration
