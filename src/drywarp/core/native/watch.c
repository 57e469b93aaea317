// Looks through the record of a wave for faults that do not show in its results: races on shared memory between two
// synchronisations, reads of device memory that nothing was written to, accesses that leave the allocation that their
// pointer belongs to.
//
// Races are found with vector clocks of warps (happens-before, as FastTrack does it: Flanagan and Freund, PLDI 2009). Each
// place remembers its last write and two of the reads since, of different warps where there are such: between barriers of
// the whole block that is enough to find whether there is a race. Within a warp, accesses are apart if a synchronisation of
// the warp stands between them in the code, or if the warp has gone back in the code in between.
#include "emulator.h"

enum { READS = 1, WRITES = 2, ATOMICALLY = 4 };
enum { RACE = 0, UNWRITTEN = 1, ELSEWHERE = 2 };
enum { NOBODY = 0xFF };

// An instruction: what it does in device and in shared memory, bytes per lane, synchronisations of the warp before it in
// the code, and the allocation that its pointer belongs to (`high` 0: unknown).
typedef struct {
  int64_t global, shared, width, synchronised, low, high;
} Use;

// What was found: how often, and the first place where. `other` and `other_thread` are -1 if no second access is involved.
typedef struct {
  int64_t what, k, other, count, block, thread, other_thread, address;
} Found;

typedef struct {
  uint32_t clock;  // 0: none
  int32_t k;
  uint32_t epoch;
  uint8_t warp, lane, second, atomic;  // `second`: another lane that read the same, or NOBODY
} Seen;

typedef struct {
  Seen write, reads[2];
} Place;

// Warps of the wave: clocks of all warps of their blocks, the place of their latest access in the code, how often they have
// synchronised, and one more than the phase that they wait for.
typedef struct {
  const Use *uses;
  const int64_t *areas;  // Start and end of allocations whose bytes count as unwritten at first, in order.
  int64_t area_count;
  uint8_t *written;  // A bit for each byte of device memory from `start` on.
  int64_t start;
  Found *found;
  int64_t most, count;
  Place *places;  // Of all blocks of the wave.
  int64_t granule, block_places;
  uint32_t *clocks;
  int64_t *latest, *epochs, *awaited;
  int64_t *phases;         // Keys of the latest phases of barriers in shared memory.
  uint32_t *phase_clocks;  // What those that signalled them had seen.
  int64_t phase_count, phase_room;
  int64_t per_block, first_row, first_warp;
} Watch;

static void found(Watch *watch, int64_t what, int64_t k, int64_t other, int64_t w, int lane, int64_t other_thread,
                  int64_t address) {
  for (int64_t i = 0; i < watch->count; ++i) {
    Found *one = watch->found + i;
    if (one->what == what && one->k == k && one->other == other) {
      ++one->count;
      return;
    }
  }
  if (watch->count >= watch->most) return;
  watch->found[watch->count++] = (Found){what, k, other, 1, w / watch->per_block,
                                         w % watch->per_block * LANES + lane, other_thread, address};
}

// Device memory.

static bool any_unwritten(const uint8_t *written, int64_t first, int64_t width) {
  for (int64_t byte = first; byte < first + width; ++byte)
    if (!(written[byte >> 3] >> (byte & 7) & 1)) return true;
  return false;
}

static void mark(uint8_t *written, int64_t first, int64_t width) {
  for (int64_t byte = first; byte < first + width; ++byte) written[byte >> 3] |= (uint8_t)(1 << (byte & 7));
}

// Whether an allocation that begins unwritten holds all of an access; `latest` is the last one that did.
static bool in_area(const Watch *watch, int64_t address, int64_t width, int64_t *latest) {
  const int64_t *areas = watch->areas;
  int64_t low = 0, high = watch->area_count;
  if (*latest < high && address >= areas[2 * *latest] && address + width <= areas[2 * *latest + 1]) return true;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (areas[2 * middle] <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (!low || address + width > areas[2 * low - 1]) return false;
  *latest = low - 1;
  return true;
}

static void watch_global(Watch *watch, const Run *run, int64_t row, int64_t w, int64_t *latest) {
  const int64_t k = run->log_instruction[row], pattern = run->log_pattern[row];
  const Use *use = watch->uses + k;
  const int64_t *offsets = run->log_offsets + pattern * LANES;
  for (Lanes lanes = run->log_masks[pattern]; lanes; lanes &= lanes - 1) {
    const int lane = lowest(lanes);
    const int64_t address = run->log_base[row] + offsets[lane], width = use->width;
    if (use->high && (address < use->low || address + width > use->high)) found(watch, ELSEWHERE, k, -1, w, lane, -1, address);
    if (!use->global || !in_area(watch, address, width, latest)) continue;
    const int64_t first = address - watch->start;
    if (use->global & READS && any_unwritten(watch->written, first, width)) {
      found(watch, UNWRITTEN, k, -1, w, lane, -1, address);
      mark(watch->written, first, width);  // told once
    }
    if (use->global & WRITES) mark(watch->written, first, width);
  }
}

// Shared memory.

static bool is_before(const Watch *watch, const Seen *one, int64_t w, int lane, int64_t k) {
  if (!one->clock) return true;
  const int64_t own = w % watch->per_block;
  if (one->warp != own) return watch->clocks[w * watch->per_block + one->warp] >= one->clock;
  return one->epoch != (uint32_t)watch->epochs[w] || one->k == k || (one->lane == lane && one->second == NOBODY);
}

static void race(Watch *watch, const Seen *one, int64_t w, int lane, int64_t k, int64_t address) {
  const int other = one->warp == w % watch->per_block && one->lane == lane ? one->second : one->lane;
  found(watch, RACE, k, one->k, w, lane, one->warp * LANES + other, address);
}

static void remember_read(const Watch *watch, Place *place, const Seen *now, int64_t w) {
  for (int i = 0; i < 2; ++i) {
    Seen *one = place->reads + i;
    if (one->clock && one->warp == now->warp && one->clock == now->clock && one->epoch == now->epoch) {
      if (one->lane != now->lane && one->second == NOBODY) one->second = now->lane;
      one->atomic &= now->atomic;
      return;
    }
  }
  for (int i = 0; i < 2; ++i) {
    Seen *one = place->reads + i;
    if (!one->clock || one->warp == now->warp || watch->clocks[w * watch->per_block + one->warp] >= one->clock) {
      *one = *now;
      return;
    }
  }
}

static void watch_shared(Watch *watch, const Run *run, int64_t row, int64_t w) {
  const int64_t k = run->log_instruction[row], pattern = run->log_pattern[row];
  const Use *use = watch->uses + k;
  const int64_t *offsets = run->log_offsets + pattern * LANES;
  Place *places = watch->places + w / watch->per_block * watch->block_places;
  const int64_t own = w % watch->per_block;
  for (Lanes lanes = run->log_masks[pattern]; lanes; lanes &= lanes - 1) {
    const int lane = lowest(lanes);
    const int64_t address = run->log_base[row] + offsets[lane];
    const Seen now = {watch->clocks[w * watch->per_block + own], (int32_t)k, (uint32_t)watch->epochs[w],
                      (uint8_t)own, (uint8_t)lane, NOBODY, (use->shared & ATOMICALLY) != 0};
    const int64_t end = (address + use->width - 1) / watch->granule;
    for (int64_t at = address / watch->granule; at <= end && at < watch->block_places; ++at) {
      Place *place = places + at;
      if (!(now.atomic && place->write.atomic) && !is_before(watch, &place->write, w, lane, k))
        race(watch, &place->write, w, lane, k, address);
      if (use->shared & WRITES) {
        for (int i = 0; i < 2; ++i)
          if (!(now.atomic && place->reads[i].atomic) && !is_before(watch, place->reads + i, w, lane, k))
            race(watch, place->reads + i, w, lane, k, address);
        place->write = now;
        place->reads[0].clock = place->reads[1].clock = 0;
      } else {
        remember_read(watch, place, &now, w);
      }
    }
  }
}

// Synchronisations.

static void join(uint32_t *into, const uint32_t *from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) into[i] = into[i] > from[i] ? into[i] : from[i];
}

// The phase of a barrier in shared memory; a new one takes the place of the oldest.
static int64_t phase_of(Watch *watch, int64_t key) {
  const int64_t held = least(watch->phase_count, watch->phase_room);
  for (int64_t back = 1; back <= held; ++back) {
    const int64_t place = (watch->phase_count - back) % watch->phase_room;
    if (watch->phases[place] == key) return place;
  }
  const int64_t place = watch->phase_count++ % watch->phase_room;
  watch->phases[place] = key;
  memset(watch->phase_clocks + place * watch->per_block, 0, sizeof(uint32_t) * (size_t)watch->per_block);
  return place;
}

// The participants of a barrier stand one after the other, the last one marked; `together` counts those before.
static void watch_event(Watch *watch, int64_t event, int64_t w, int64_t *together, int64_t *participants) {
  const int64_t n = watch->per_block;
  uint32_t *mine = watch->clocks + w * n;
  if ((event & 3) >= SIGNALS) {
    const int64_t key = event >> 2 << 16 | w / n;
    if ((event & 3) == AWAITS) {
      watch->awaited[w] = 1 + phase_of(watch, key);
      return;
    }
    join(watch->phase_clocks + phase_of(watch, key) * n, mine, n);
    ++mine[w % n];
    return;
  }
  if (*together < LANES * 2) participants[(*together)++] = w;
  if ((event & 3) != LAST_PASSES) return;
  for (int64_t i = 0; i + 1 < *together; ++i) join(mine, watch->clocks + participants[i] * n, n);
  for (int64_t i = 0; i + 1 < *together; ++i)
    memcpy(watch->clocks + participants[i] * n, mine, sizeof(uint32_t) * (size_t)n);
  for (int64_t i = 0; i < *together; ++i) ++watch->clocks[participants[i] * n + participants[i] % n];
  *together = 0;
}

// Look through the rows of a wave. Returns how many different things are found so far.
EXPORT int64_t drywarp_watch(const Run *run, Watch *watch) {
  int64_t together = 0, participants[LANES * 2], latest = 0;
  for (int64_t row = watch->first_row; row < run->state->accesses; ++row) {
    const int64_t w = run->log_warp[row] - watch->first_warp, k = run->log_instruction[row];
    // What a warp waits for has happened when it goes on.
    if (watch->awaited[w]) {
      join(watch->clocks + w * watch->per_block,
           watch->phase_clocks + (watch->awaited[w] - 1) * watch->per_block, watch->per_block);
      watch->awaited[w] = 0;
    }
    if (run->log_space[row] == EVENT) {
      watch_event(watch, run->log_base[row], w, &together, participants);
      continue;
    }
    if (k <= watch->latest[w] || watch->uses[k].synchronised != watch->uses[watch->latest[w]].synchronised)
      ++watch->epochs[w];
    watch->latest[w] = k;
    if (run->log_space[row] == GLOBAL)
      watch_global(watch, run, row, w, &latest);
    else if (run->log_space[row] == SHARED && watch->uses[k].shared && watch->places)
      watch_shared(watch, run, row, w);
  }
  return watch->count;
}

// Mark bytes of device memory as written, or as not: whole bytes of the bits by the caller's hand, the ends here.
EXPORT int64_t drywarp_mark(uint8_t *written, int64_t first, int64_t size, int64_t yes) {
  const int64_t end = first + size, whole = (first + 7) >> 3, last = end >> 3;
  for (int64_t byte = first; byte < end; ++byte) {
    if (byte >> 3 >= whole && byte >> 3 < last) {
      memset(written + whole, yes ? 0xFF : 0, (size_t)(last - whole));
      byte = (last << 3) - 1;
      continue;
    }
    const uint8_t bit = (uint8_t)(1 << (byte & 7));
    written[byte >> 3] = yes ? written[byte >> 3] | bit : written[byte >> 3] & (uint8_t)~bit;
  }
  return 0;
}

// The first of these bytes that is not marked, counted from the first; -1 if there is none.
EXPORT int64_t drywarp_first_unwritten(const uint8_t *written, int64_t first, int64_t size) {
  for (int64_t byte = first; byte < first + size; ++byte) {
    if (!(byte & 7) && byte + 8 <= first + size && written[byte >> 3] == 0xFF)
      byte += 7;
    else if (!(written[byte >> 3] >> (byte & 7) & 1))
      return byte - first;
  }
  return -1;
}

// Copy the marks of bytes to others that do not overlap them, as a copy of the bytes would.
EXPORT int64_t drywarp_copy_marks(uint8_t *written, int64_t to, int64_t from, int64_t size) {
  if (!((to | from | size) & 7)) {
    memmove(written + (to >> 3), written + (from >> 3), (size_t)(size >> 3));
    return 0;
  }
  for (int64_t i = 0; i < size; ++i) {
    const uint8_t bit = (uint8_t)(1 << ((to + i) & 7));
    if (written[(from + i) >> 3] >> ((from + i) & 7) & 1)
      written[(to + i) >> 3] |= bit;
    else
      written[(to + i) >> 3] &= (uint8_t)~bit;
  }
  return 0;
}
