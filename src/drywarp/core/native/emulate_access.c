// Loads, stores, copies and atomics.
//
// An instruction is first checked for all warps: if any lane does something out of the ordinary (another buffer for some
// lanes, a faulty address), nothing is done, and the instruction is left to the NumPy handler. Buffer content that has not
// been generated yet is generated first.
#include "emulator.h"

enum { CHUNK_BITS = 16 };
static const Words ZERO;

// What `imm2` packs: bytes of an element, whether it is signed, the scale of a window's address, and whether a 32-bit
// register holds the whole address.
static inline int64_t width_of(const Instruction *row) { return row->imm2 & 255; }
static inline bool is_signed(const Instruction *row) { return row->imm2 >> 8 & 1; }
static inline uint32_t scale_of(const Instruction *row) { return row->imm2 >> 16 & 255; }
static inline bool is_narrow(const Instruction *row) { return row->imm2 >> 24 & 1; }

static int64_t region_with(const Run *run, uint64_t address) {
  for (int64_t number = 0; number < run->state->regions; ++number) {
    const Region *region = run->region_table + number;
    if (address - (uint64_t)region->region_start < (uint64_t)region->region_size) return number;
  }
  return -1;
}

// Whether the content at these addresses exists; if not, the state says what is missing. Inactive lanes are at the lowest
// active one's address.
static bool is_ready(Run *run, const Region *region, const uint64_t *addresses) {
  if (!region->region_pending) return true;
  uint64_t latest = UINT64_MAX;
  for (int l = 0; l < LANES; ++l) {
    const uint64_t chunk = (addresses[l] - (uint64_t)region->region_start) >> CHUNK_BITS;
    if (chunk != latest && run->pending[region->region_chunk + (int64_t)chunk]) {
      run->state->missing = region->region_chunk + (int64_t)chunk;
      return false;
    }
    latest = chunk;
  }
  return true;
}

// Whether all addresses lie in one buffer, aligned, with content; else the access is special.
static bool in_global(Run *run, Instruction *row, const uint64_t *addresses) {
  const int64_t width = width_of(row);
  int64_t number = row->region;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (number >= 0 && number < run->state->regions && run->region_table[number].region_size >= width) {
      const Region *region = run->region_table + number;
      const uint64_t start = (uint64_t)region->region_start, most_of = (uint64_t)(region->region_size - width);
      uint64_t outside = 0, any = 0;
      for (int l = 0; l < LANES; ++l) {
        const uint64_t offset = addresses[l] - start;
        any |= offset;
        outside |= offset | (most_of - offset);
      }
      if (!(outside >> 63)) {
        if (any & (uint64_t)(width - 1)) return false;
        row->region = number;
        return is_ready(run, region, addresses);
      }
    }
    number = region_with(run, addresses[0]);
  }
  return false;
}

// Whether addresses lie in a window of `size` bytes, aligned.
static bool within(const uint64_t *addresses, int64_t size, int64_t width) {
  uint64_t outside = 0, any = 0;
  if (size < width) return false;
  for (int l = 0; l < LANES; ++l) {
    any |= addresses[l];
    outside |= (uint64_t)(size - width) - addresses[l];
  }
  return !(outside >> 63) && !(any & (uint64_t)(width - 1));
}

// The operands of an address.
typedef struct {
  Operand a, high_a, b, high_b;
} Address;

// Compute the addresses of all warps, for a copy's shared side (1) after those of its other side; false if any is not
// ordinary.
static bool check(Run *run, Instruction *row, int64_t space, int side) {
  const State *at = run->state;
  const bool global = space == GLOBAL || space == GENERIC, narrow = is_narrow(row);
  const int64_t size = space == SHARED ? at->shared_bytes : at->local_bytes;
  Address from;
  if (side) {
    find(run, &row->c, &from.a);
  } else if (global) {
    if (narrow)
      find(run, &row->a, &from.a);
    else
      find_pair(run, &row->a, &from.a, &from.high_a);
    find_pair(run, &row->b, &from.b, &from.high_b);
  } else {
    find(run, &row->a, &from.a);
    find(run, &row->b, &from.b);
  }
  for (int64_t member = 0; member < at->members; ++member) {
    const int64_t w = run->batch[member];
    Lanes lanes = run->active[w] & lanes_of(run, row->guard, w);
    run->lane_sets[member] = lanes;
    // In a copy, only lanes whose source is valid read.
    if (!side) lanes &= lanes_of(run, row->in0, w);
    if (!lanes) continue;
    uint64_t *addresses = (uint64_t *)run->addresses + (side * at->warps + member) * LANES;
    const uint32_t *a = words_for(&from.a, w);
    if (side) {
      const uint32_t added = (uint32_t)row->sub;
      EACH_LANE addresses[l] = a[l] + added;
    } else if (global) {
      const uint32_t *b = words_for(&from.b, w), *high_b = words_for(&from.high_b, w);
      const uint64_t added = (uint64_t)row->imm;
      if (narrow) {
        EACH_LANE addresses[l] = a[l] + pair_of(b[l], high_b[l]) + added;
      } else {
        const uint32_t *high_a = words_for(&from.high_a, w);
        EACH_LANE addresses[l] = pair_of(a[l], high_a[l]) + pair_of(b[l], high_b[l]) + added;
      }
    } else {
      const uint32_t *b = words_for(&from.b, w), scale = scale_of(row), added = (uint32_t)row->imm;
      EACH_LANE addresses[l] = a[l] * scale + b[l] + added;
    }
    if (lanes != ~0u) {
      // Inactive lanes use the address of the first active one, which is harmless.
      const uint64_t harmless = addresses[lowest(lanes)];
      EACH_LANE addresses[l] = lanes & BIT[l] ? addresses[l] : harmless;
    }
    if (!(global ? in_global(run, row, addresses) : within(addresses, size, width_of(row)))) return false;
  }
  return true;
}

static void count_guarded(const Run *run, const Instruction *row, int64_t w, Lanes lanes) {
  if (row->guard != ALWAYS) run->guarded[(row - run->code) * run->state->warps + w] += count(lanes);
}

// Where a warp's elements are: bytes from `memory` on, and from there to the second and later words of an element.
typedef struct {
  uint8_t *memory;
  uint64_t *at;  // Of each lane, unless all are consecutive words or the same, whose first is `first`.
  uint64_t first;
  int64_t step;
  int8_t kind;
} Elements;

// Record a warp's access, and find its elements.
static Elements recorded(Run *run, Instruction *row, int64_t w, int space, uint64_t *addresses, Lanes lanes,
                         int64_t *pattern) {
  *pattern = note(run, row - run->code, w, addresses, lanes, space, *pattern);
  Elements found = {run->arena, addresses, 0, 4, run->log_kinds[*pattern]};
  if (space == LOCAL) {
    // Interleaved: word, then thread. Each of its lanes has another word at the same address.
    const uint64_t threads = (uint64_t)run->state->warps * LANES, first = (uint64_t)w * LANES;
    found.memory = (uint8_t *)run->local_memory;
    found.step = (int64_t)threads * 4;
    found.kind = IRREGULAR;
    EACH_LANE addresses[l] = ((addresses[l] >> 2) * threads + first + (uint64_t)l) * 4 + (addresses[l] & 3);
    return found;
  }
  const uint64_t start = space == SHARED ? (uint64_t)run->shared_base[w] : 0 - (uint64_t)run->origin[0];
  if (space == SHARED) found.memory = run->shared_memory;
  found.first = addresses[lowest(lanes)] + start;
  if (found.kind == IRREGULAR || width_of(row) < 4) EACH_LANE addresses[l] += start;
  return found;
}

static inline uint32_t word_at(const uint8_t *memory) {
  uint32_t word;
  memcpy(&word, memory, 4);
  return word;
}

// Read the words `further` after the first of each element; elements of less than a word are extended.
static void gather(const Instruction *row, const Elements *from, int further, uint32_t *out) {
  const uint8_t *memory = from->memory + further * from->step;
  const int64_t width = width_of(row);
  if (width < 4) {
    const uint32_t sign = is_signed(row) ? (width == 2 ? 0x8000 : 0x80) : 0;
    for (int l = 0; l < LANES; ++l) {
      uint32_t value = memory[from->at[l]];
      if (width == 2) value |= (uint32_t)memory[from->at[l] + 1] << 8;
      out[l] = value - ((value & sign) << 1);
    }
  } else if (from->kind == SAME) {
    splat(out, word_at(memory + from->first));
  } else if (from->kind == CONSECUTIVE && width == 4) {
    memcpy(out, memory + from->first, sizeof(uint32_t) * LANES);
  } else if (from->kind == CONSECUTIVE) {
    for (int l = 0; l < LANES; ++l) out[l] = word_at(memory + from->first + 4 * l);
  } else {
    for (int l = 0; l < LANES; ++l) out[l] = word_at(memory + from->at[l]);
  }
}

// Write a word of each element; if lanes hit the same place, the highest lane wins.
static void scatter(const Instruction *row, const Elements *to, int further, Lanes lanes, const uint32_t *words) {
  uint8_t *memory = to->memory + further * to->step;
  const int64_t width = width_of(row);
  if (width == 4 && to->kind == CONSECUTIVE) {
    memcpy(memory + to->first, words, sizeof(uint32_t) * LANES);
    return;
  }
  const bool same = to->kind == SAME && width >= 4, consecutive = to->kind == CONSECUTIVE && width >= 4;
  const size_t size = width < 4 ? (size_t)width : 4;
  for (int l = 0; l < LANES; ++l) {
    if (!(lanes & BIT[l])) continue;
    const uint64_t place = same ? to->first : consecutive ? to->first + 4 * (uint64_t)l : to->at[l];
    // A narrow element is the word's lower bytes.
    if (size == 4)
      memcpy(memory + place, words + l, 4);
    else
      memcpy(memory + place, words + l, size);
  }
}

static int64_t parts_of(const Instruction *row) { return most(width_of(row) >> 2, 1); }

static bool run_plain(Run *run, Instruction *row) {
  const int space = row->sub == GENERIC ? GLOBAL : (int)row->sub;
  if (!check(run, row, row->sub, 0)) return false;
  const int64_t parts = parts_of(row);
  const bool stores = row->op == STORE;
  Operand value[4];
  if (stores)
    for (int i = 0; i < parts; ++i) find_part(run, &row->c, i, &value[i]);
  Words held;
  for (int64_t member = 0; member < run->state->members; ++member) {
    const int64_t w = run->batch[member];
    const Lanes lanes = (Lanes)run->lane_sets[member];
    if (!lanes) continue;
    count_guarded(run, row, w, lanes);
    const Elements found =
        recorded(run, row, w, space, (uint64_t *)run->addresses + member * LANES, lanes, &row->pattern);
    for (int i = 0; i < parts; ++i) {
      if (stores) {
        scatter(row, &found, i, lanes, words_for(&value[i], w));
      } else {
        uint32_t *out = target(run, row, i, w, lanes, &held);
        gather(row, &found, i, out);
        finish(run, row, i, w, lanes, out);
      }
    }
  }
  return true;
}

// A copy from global to shared memory; lanes whose source is not valid store zeros.
static bool run_copy(Run *run, Instruction *row) {
  if (!check(run, row, SHARED, 1) || !check(run, row, GLOBAL, 0)) return false;
  uint64_t *places = (uint64_t *)run->addresses;
  for (int64_t member = 0; member < run->state->members; ++member) {
    const int64_t w = run->batch[member];
    const Lanes lanes = (Lanes)run->lane_sets[member];
    if (!lanes) continue;
    count_guarded(run, row, w, lanes);
    const Lanes valid = lanes & lanes_of(run, row->in0, w);
    Elements from = {0}, to;
    if (valid) from = recorded(run, row, w, GLOBAL, places + member * LANES, valid, &row->pattern);
    to = recorded(run, row, w, SHARED, places + (run->state->warps + member) * LANES, lanes, &row->pattern2);
    Words words[4];
    for (int i = 0; i < width_of(row) >> 2; ++i) {
      if (valid) gather(row, &from, i, words[i].at);
      EACH_LANE words[i].at[l] = valid & BIT[l] ? words[i].at[l] : 0;
    }
    for (int i = 0; i < width_of(row) >> 2; ++i) scatter(row, &to, i, lanes, words[i].at);
  }
  return true;
}

// The value that an atomic leaves in place of `old`; words come zero-extended and are truncated again.
static uint64_t updated(int64_t how, uint64_t old, uint64_t a, uint64_t b, bool is_long) {
  const uint64_t sign = is_long ? UINT64_C(1) << 63 : 0x80000000;
  const bool with_sign = how == LEAST_SIGNED || how == MOST_SIGNED;
  const uint64_t x = with_sign ? old ^ sign : old, y = with_sign ? a ^ sign : a;
  switch (how) {
    case ADDS_FLOAT: return made(single_of((uint32_t)old) + single_of((uint32_t)a));
    case ADDS_FLUSHED:
      return flushed(made(single_of(flushed((uint32_t)old)) + single_of(flushed((uint32_t)a))));
    case ADDS_DOUBLE: return long_made(double_of(old) + double_of(a));
    case ADDS: return old + a;
    case EXCHANGES: return a;
    case SWAPS: return old == a ? b : old;
    case MEETS: return old & a;
    case JOINS: return old | a;
    case DIFFERS: return old ^ a;
    case COUNTS_UP: return old >= a ? 0 : old + 1;
    case COUNTS_DOWN: return old == 0 || old > a ? a : old - 1;
    case LEAST:
    case LEAST_SIGNED: return x < y ? old : a;
    default: return x < y ? a : old;
  }
}

// Lanes take effect one after the other, in ascending order.
static bool run_atomic(Run *run, Instruction *row) {
  const int space = row->sub == GENERIC ? GLOBAL : (int)row->sub;
  if (!check(run, row, row->sub, 0)) return false;
  const bool is_long = width_of(row) >> 3;
  Operand first[2], second[2];
  for (int i = 0; i <= is_long; ++i) {
    find_part(run, &row->c, i, &first[i]);
    find_part(run, &row->d, i, &second[i]);
  }
  for (int64_t member = 0; member < run->state->members; ++member) {
    const int64_t w = run->batch[member];
    const Lanes lanes = (Lanes)run->lane_sets[member];
    if (!lanes) continue;
    count_guarded(run, row, w, lanes);
    const Elements found =
        recorded(run, row, w, space, (uint64_t *)run->addresses + member * LANES, lanes, &row->pattern);
    const uint32_t *a = words_for(&first[0], w), *high_a = is_long ? words_for(&first[1], w) : ZERO.at;
    const uint32_t *b = words_for(&second[0], w), *high_b = is_long ? words_for(&second[1], w) : ZERO.at;
    Words before[2] = {{{0}}};
    Lanes swapped = 0;
    for (int l = 0; l < LANES; ++l) {
      if (!(lanes & BIT[l])) continue;
      const uint64_t place = found.kind == IRREGULAR ? found.at[l] : found.first + (found.kind == SAME ? 0 : 4u * l);
      uint8_t *memory = found.memory + place;
      const uint64_t old = pair_of(word_at(memory), is_long ? word_at(memory + found.step) : 0);
      const uint64_t given = pair_of(a[l], high_a[l]), made = updated(row->flush_out, old, given, pair_of(b[l], high_b[l]), is_long);
      if (old == given) swapped |= BIT[l];
      memcpy(memory, &made, 4);
      if (is_long) memcpy(memory + found.step, (const uint8_t *)&made + 4, 4);
      before[0].at[l] = (uint32_t)old;
      before[1].at[l] = (uint32_t)(old >> 32);
    }
    put_lanes(run, row->out0, w, row->flush_out == SWAPS ? swapped : ~0u, lanes);
    for (int i = 0; i <= is_long; ++i) finish(run, row, i, w, lanes, before[i].at);
  }
  return true;
}

bool run_access(Run *run, Instruction *row) {
  if (row->op == COPY) return run_copy(run, row);
  return row->op == ATOMIC ? run_atomic(run, row) : run_plain(run, row);
}
