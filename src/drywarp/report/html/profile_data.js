// The unpacked events of the execution profile, and the rows in which they are drawn.
const FLIGHT_ROWS = 3;

class ProfileData {
  constructor(packed) {
    const columns = Object.fromEntries(Object.entries(packed.columns).map(([name, column]) => [name, unpack(column)]));
    Object.assign(this, packed, columns);
    const n = this.count = packed.count, tick = packed.ticks_per_cycle;
    this.start = new Float64Array(n);  // cycles since the first issue
    this.taken = new Float64Array(n);  // until the subsystem accepts another instruction
    this.end = new Float64Array(n);
    this.lane = new Uint8Array(n);
    this.row = new Int32Array(n);
    let now = 0;
    for (let i = 0; i < n; i++) {
      now += columns.step[i];
      const [, lane, lambda] = packed.nodes[this.node[i]];
      this.start[i] = now / tick;
      this.taken[i] = (now + Math.max(lambda, 1)) / tick;
      this.end[i] = Math.max(this.taken[i], (now + columns.duration[i]) / tick);
      this.lane[i] = lane;
    }
    this.last = n ? Math.max(this.start[n - 1], this.taken.reduce((a, b) => Math.max(a, b), 0)) : 1;
    this.before = this.chain();
    this.opcodes = packed.nodes.map(([index]) => (packed.opcodes[index] || `#${index}`));
  }

  // The previous issue of the same warp, -1 for a warp's first.
  chain() {
    const before = new Int32Array(this.count).fill(-1), last = new Map();
    this.after = new Int32Array(this.count).fill(-1);
    for (let i = 0; i < this.count; i++) {
      const key = this.block[i] * 65536 + this.warp[i], previous = last.get(key);
      if (previous !== undefined) { before[i] = previous; this.after[previous] = i; }
      last.set(key, i);
    }
    return before;
  }

  byWarp() {
    let warps = 0;
    for (let i = 0; i < this.count; i++) { this.row[i] = this.warp[i]; warps = Math.max(warps, this.warp[i] + 1); }
    return this.rows(Array.from({ length: warps }, (_, warp) => ({ label: `warp ${warp}`, begins: warp % this.warps_per_block === 0 })));
  }

  instanceOf(i) {
    const lane = this.lane[i];
    return lane * 64 + (this.lanes[lane].instances > 1 ? this.warp[i] % this.partitions : 0);
  }

  // Each subsystem instance has as many rows as instructions in flight at once. If that exceeds `most`, it has one row
  // for issues, and below it an area chart of the number in flight.
  bySubsystem(most) {
    const instances = new Map(), place = new Int32Array(this.count), rows = [];
    this.lanes.forEach((lane, number) => {
      for (let k = 0; k < lane.instances; k++)
        instances.set(number * 64 + k, { label: lane.instances > 1 ? `${lane.name} ${k}` : lane.name, ends: [], events: [] });
    });
    for (let i = 0; i < this.count; i++) {
      const own = instances.get(this.instanceOf(i));
      own.events.push(i);
      if (own.ends.length > most) continue;
      let row = own.ends.findIndex((end) => end <= this.start[i] + 1e-9);
      if (row < 0) row = own.ends.push(0) - 1;
      own.ends[row] = this.end[i];
      place[i] = row;
    }
    for (const own of instances.values()) {
      own.first = rows.length;
      own.deep = own.ends.length > most;
      if (own.deep) {
        const flight = this.inFlight(own.events);
        rows.push({ label: own.label, begins: true, deep: true });
        for (let r = 0; r < FLIGHT_ROWS; r++) rows.push({ label: r ? "" : "in flight", begins: false, flight, part: r, lane: this.lane[own.events[0]] });
      } else for (let r = 0; r < Math.max(1, own.ends.length); r++) rows.push({ label: r ? "" : own.label, begins: r === 0 });
    }
    for (let i = 0; i < this.count; i++) {
      const own = instances.get(this.instanceOf(i));
      this.row[i] = own.first + (own.deep ? 0 : place[i]);
    }
    return this.rows(rows);
  }

  // How many of these events are in flight: times, and the number in flight from each time on.
  inFlight(events) {
    const starts = Float64Array.from(events, (i) => this.start[i]), ends = Float64Array.from(events, (i) => this.end[i]).sort();
    const times = new Float64Array(2 * events.length), counts = new Int32Array(2 * events.length);
    let a = 0, b = 0, now = 0, most = 0;
    for (let k = 0; k < times.length; k++) {
      if (a < starts.length && starts[a] < ends[b]) { times[k] = starts[a++]; now++; } else { times[k] = ends[b++]; now--; }
      counts[k] = now;
      most = Math.max(most, now);
    }
    return { times, counts, most };
  }

  flying(flight, cycle) {
    let low = 0, high = flight.times.length;
    while (low < high) { const middle = (low + high) >> 1; if (flight.times[middle] <= cycle) low = middle + 1; else high = middle; }
    return low ? flight.counts[low - 1] : 0;
  }

  // Events by row in issue order, and the latest end among the events up to each one, for searching.
  rows(rows) {
    const from = new Int32Array(rows.length + 1);
    for (let i = 0; i < this.count; i++) from[this.row[i] + 1]++;
    for (let r = 0; r < rows.length; r++) from[r + 1] += from[r];
    const items = new Int32Array(this.count), reach = new Float64Array(this.count), at = from.slice();
    for (let i = 0; i < this.count; i++) items[at[this.row[i]]++] = i;
    for (let r = 0; r < rows.length; r++) {
      let most = -Infinity;
      for (let k = from[r]; k < from[r + 1]; k++) { most = Math.max(most, this.end[items[k]]); reach[k] = most; }
    }
    return { rows, from, items, reach };
  }

  // The range [first, end) in `items` of row r that may be visible between two times.
  visible(layout, r, begin, end) {
    const { from, items, reach } = layout;
    let low = from[r], high = from[r + 1];
    while (low < high) { const middle = (low + high) >> 1; if (reach[middle] < begin) low = middle + 1; else high = middle; }
    const first = low;
    high = from[r + 1];
    while (low < high) { const middle = (low + high) >> 1; if (this.start[items[middle]] <= end) low = middle + 1; else high = middle; }
    // One more: in a warp's row, the stall before an issue is drawn with that issue.
    return [first, Math.min(low + 1, from[r + 1])];
  }
}
