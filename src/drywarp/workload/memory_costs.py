"""The cost of a memory access on a GPU: λ, Λ and the further levels that it visits (mapper g, §3.1.3)."""

from __future__ import annotations

from ..hardware import Gpu
from ..kernel.profile import SPACE_SHARED
from ..memory.behaviour import AccessBehaviour
from .cost import Level, to_ticks


class MemoryCosts:
    """λ, Λ and further levels of memory accesses on one GPU, given the bytes that its blocks move to and from DRAM.

    `host` are the bytes that they read from and write to host memory. `beside_products`: shared memory is theirs too.
    """

    def __init__(
        self,
        gpu: Gpu,
        clock_mhz: float,
        blocks: int,
        index: dict[str, int],
        read: float,
        write: float,
        host: tuple[float, float] = (0.0, 0.0),
        beside_products: bool = False,
    ) -> None:
        self.gpu, self.index, self.beside_products = gpu, index, beside_products
        levels, sms = gpu.memory, gpu.device.sm_count
        self.sms, self.tail_sms = sms, blocks % sms or sms  # those of the partial last wave, or all
        self.l1_latency = levels.l1.latency
        # The crossbar and the L2 follow the SM clock; everything beyond them does not.
        near, far = levels.l2.latency_ns, levels.l3.latency_ns if levels.l3 else 0.0
        self.l2_latency = gpu.cycles(near)
        self.l3_latency = self.l2_latency + gpu.cycles(far - near, clock_mhz) if levels.l3 else 0.0
        self.dram_latency = self.l2_latency + gpu.cycles(levels.dram.latency_ns - near, clock_mhz)
        self.sm_intake = levels.l2.bytes_per_cycle_per_sm or levels.l1.bytes_per_cycle
        gbs = dram_bandwidth(levels.dram.read_gbs, levels.dram.copy_gbs, levels.dram.write_gbs, read, write)
        self.dram_rate = gpu.bytes_per_cycle(gbs, clock_mhz)
        self.scattered_factor = max(1.0, gbs / (levels.dram.scattered_gbs or gbs))
        self.host_rate, self.host_latency = 0.0, self.dram_latency
        if gpu.host is not None:
            self.host_rate = gpu.bytes_per_cycle(duplex_bandwidth(gpu.host.copy_gbs, *host), clock_mhz)
            beyond = max(0.0, (gpu.host.latency_ns or levels.dram.latency_ns) - near)
            self.host_latency = self.l2_latency + gpu.cycles(beyond, clock_mhz)

    def cost(
        self, shared: bool, behaviour: AccessBehaviour | None, slot: float, floats: str = "", returned: int = 0
    ) -> tuple[float, float, tuple[Level, ...]]:
        """λ, Λ and further levels of a memory instruction; `slot` is the λ of its class, `floats` the type if an atomic
        adds to floating-point numbers, `returned` the bytes that a load of global or local memory writes to registers.

        An access takes its slot of the load-store unit, or its wavefronts if they take longer: for shared memory as
        many as its bank conflicts cause; for global and local memory one per line's worth of sectors, per tags that are
        looked up in a cycle, or per pass of the banks if those are also the L1's data stage, or per 128 bytes of
        registers that a load fills, whichever is largest: lanes that read the same bytes get a copy each. Λ is the mean
        over the levels that serve its sectors (the average memory access time, GPUPerf §3), plus the λ of its own
        further wavefronts (analysis paper §6.3); a hit on a sector that another access has just asked for takes as long
        as that one's miss (the pending hits of Chen and Aamodt, MICRO 2008), and so do one that its warp awaits with a
        miss, and one in the L2 on data that another block has just asked DRAM for. Wavefronts at the shared memory of
        another block of the cluster have a Λ of their own, and take the load-store unit for as long as the network
        between the SMs takes to move them. Executions without an active lane also take their slot, so they do not hide
        the conflicts of the others.
        """
        levels = self.gpu.memory
        if behaviour is None:
            return slot, levels.shared.latency if shared else self.l1_latency, ()
        # A measured rate may be slightly below the documented wavefront per slot.
        bank_pass = min(slot, levels.shared.banks * levels.shared.bank_bytes / levels.shared.bytes_per_cycle)
        idle = max(0.0, 1 - behaviour.requests)
        if behaviour.space == SPACE_SHARED:
            passes = max(1.0, behaviour.units + idle)
            latency, remote = levels.shared.latency, behaviour.remote
            latency += remote * ((levels.shared.remote_latency or latency) - latency)
            if remote and (rate := levels.shared.remote_bytes_per_cycle):
                bank_pass += remote * max(0.0, levels.shared.banks * levels.shared.bank_bytes / rate - bank_pass)
            moving = to_ticks(bank_pass * behaviour.units * self.beside_products)
            path = (Level(self.index["async_shared"], moving, moving, queues=False),) if moving else ()
            return max(slot, bank_pass * passes), latency + (passes - 1) * bank_pass, path
        sectors = behaviour.units
        wavefront = min(slot, levels.line_bytes / levels.l1.bytes_per_cycle)
        lines = sectors * levels.sector_bytes / levels.line_bytes
        copies = returned / levels.line_bytes * behaviour.requests
        moved = wavefront * max(1.0, lines + idle, behaviour.lines / levels.l1.tags_per_cycle + idle, copies + idle)
        # The banks are those of shared memory, and a pass takes as long as it does there.
        busy = max(moved, bank_pass * (behaviour.passes + idle))
        miss, far = 1 - behaviour.l1_hit, 1 - behaviour.l2_hit
        farthest = self.l3_latency * behaviour.l3_hit + self.dram_latency * (1 - behaviour.l3_hit)
        farthest += (self.host_latency - farthest) * behaviour.host
        distant = min(1.0, far + behaviour.l2_late)
        beyond = self.l2_latency * (1 - distant) + farthest * distant
        waits = min(1.0, max(0.0, miss + behaviour.l1_late))
        latency = self.l1_latency * (1 - waits) + beyond * waits + busy - wavefront
        to_l2 = sectors * miss * levels.sector_bytes
        visited = [self._level("l2", to_l2, levels.l2.bytes_per_cycle, behaviour.merged)] if to_l2 else []
        if levels.l3 and (to_l3 := (to_l2 * far + behaviour.dram_write * levels.sector_bytes)):
            visited.append(self._level("l3", to_l3, levels.l3.bytes_per_cycle))
        visited += self._beyond(behaviour)
        if busy_for := self._atomic_cycles(behaviour, floats):
            full, tail = to_ticks(busy_for * self.sms), to_ticks(busy_for * self.tail_sms)
            visited.append(Level(self.index["atomics"], full, tail))
        return max(slot, busy), latency, tuple(visited)

    def _atomic_cycles(self, behaviour: AccessBehaviour, floats: str) -> float:
        """How long an atomic occupies the L2's units: at the busiest address, at the busiest slice, or at all slices.

        At one address its lanes follow each other. A slice takes one sector after the other, and stays with a sector
        until all lanes that share an address in it have had their turn. As many slices as the L2 moves sectors a cycle
        are assumed.
        """
        l2 = self.gpu.memory.l2
        if not behaviour.lanes:
            return 0.0
        rate = (l2.float_atomics_per_cycle if floats else None) or l2.atomics_per_cycle
        every = (l2.double_atomic_lane_cycles if floats == "F64" else None) or 0.0
        sector = l2.atomic_sector_cycles and l2.atomic_sector_cycles + (
            (behaviour.together - 1) / rate if rate else 0.0
        )
        lane = max(every, (sector or 0.0) * behaviour.units / behaviour.lanes)
        slices = l2.bytes_per_cycle / self.gpu.memory.sector_bytes
        least = behaviour.same_address / rate if rate else 0.0
        return behaviour.atomics_factor * max(least, behaviour.same_slice * lane, behaviour.lanes * lane / slices)

    def bulk_cost(
        self, behaviour: AccessBehaviour | None, slot: float, engine: float
    ) -> tuple[float, float, tuple[Level, ...]]:
        """λ, Λ and further levels of a copy-engine copy: `slot` per 128 bytes, `engine` on top of the memory's Λ.

        The bytes occupy shared memory's data path, which delays warp-group products, without waiting for those; they
        bypass the L1 on the way to or from the L2.
        """
        if behaviour is None:
            return slot, engine, ()
        levels = self.gpu.memory
        moved = behaviour.units * levels.sector_bytes
        far = 1 - behaviour.l2_hit
        farthest = self.dram_latency + (self.host_latency - self.dram_latency) * behaviour.host
        latency = engine + self.l2_latency * (1 - far) + farthest * far
        taken = self.shared_ticks(moved)
        visited = [Level(self.index["async_shared"], taken, taken, queues=False)]
        if moved:
            visited.append(self._level("l2", moved, levels.l2.bytes_per_cycle, behaviour.merged))
        visited += self._beyond(behaviour)
        return max(slot, slot * moved / levels.line_bytes), latency, tuple(visited)

    def _beyond(self, behaviour: AccessBehaviour) -> list[Level]:
        """The visits beyond the caches: to DRAM, and to the bus for what lies in host memory."""
        dram, host = behaviour.dram_read + behaviour.dram_write, behaviour.host_read + behaviour.host_write
        # Scattered sectors take as much of DRAM's time as this many others.
        dram *= 1 + behaviour.apart * (self.scattered_factor - 1)
        both = ("dram", dram, self.dram_rate), ("host", host, self.host_rate)
        return [self._level(name, each * self.gpu.memory.sector_bytes, rate) for name, each, rate in both if each]

    def shared_ticks(self, moved: float) -> int:
        """Ticks that `moved` bytes without bank conflicts occupy the data path of shared memory."""
        shared = self.gpu.memory.shared
        return to_ticks(moved / (shared.banks * shared.bank_bytes))

    def _level(self, name: str, moved: float, rate: float, merged: float = 1.0) -> Level:
        """λ of one SM's transfer of `moved` bytes if all SMs share `rate` bytes per cycle for a fraction of these."""
        alone, shared = moved / self.sm_intake, moved * merged / rate
        return Level(
            self.index[name], to_ticks(max(shared * self.sms, alone)), to_ticks(max(shared * self.tail_sms, alone))
        )


def duplex_bandwidth(gbs: float, read: float, written: float) -> float:
    """Bandwidth in GB/s of a bus that carries `gbs` in each direction at once, for a mix of bytes read and written."""
    return gbs * (read + written) / max(read, written) if read + written > 0 else gbs


def dram_bandwidth(read_gbs: float, copy_gbs: float, write_gbs: float, read: float, written: float) -> float:
    """Achievable DRAM bandwidth in GB/s for a mix of bytes read and written.

    Linear interpolation between the measured rates of pure reading, copying (half and half) and pure writing.
    """
    if read + written <= 0:
        return read_gbs
    share = written / (read + written)
    if share <= 0.5:
        return read_gbs + (copy_gbs - read_gbs) * 2 * share
    return copy_gbs + (write_gbs - copy_gbs) * (2 * share - 1)
