// Loads, stores, copies and atomics.
//
// An instruction is first checked for all warps: if any lane does something out of the ordinary (another buffer for some
// lanes, a faulty address), nothing is done, and the instruction is left to the NumPy handler. Buffer content that has not
// been generated yet is generated first.
#include "emulator.h"

enum { CHUNK_BITS = 16 };
static const Words ZERO;
// The words of a warp's lanes, one after the other.
static const Shape IN_ORDER = {
    .offsets = {0,  4,  8,  12, 16, 20, 24, 28, 32, 36, 40, 44, 48,  52,  56,  60,
                64, 68, 72, 76, 80, 84, 88, 92, 96, 100, 104, 108, 112, 116, 120, 124},
    .high = 124, .bits = 124, .groups = {CONSECUTIVE, CONSECUTIVE, CONSECUTIVE, CONSECUTIVE},
    .kind = CONSECUTIVE, .narrow = true};

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

// One side of an access: the operands of its addresses, and the patterns that its previous warps had.
typedef struct {
  Operand a, high_a, b, high_b;
  bool global, narrow;
  uint32_t scale;
  uint64_t added;
  int64_t size;         // Of a window.
  const int64_t *first; // Address of the first byte of each warp's window; it need not exist.
  int64_t *latest[2];   // Where the instruction notes its latest patterns; the second may be missing.
  int64_t known[2];     // Those when the check began.
} Side;

// What `lane_sets` holds: the lanes, and from this bit on one more than which of the known patterns they have.
enum { WHICH = 32 };

static void begin_side(const Run *run, Instruction *row, int64_t space, int side, Side *from) {
  const State *at = run->state;
  from->global = space == GLOBAL || space == GENERIC;
  from->narrow = is_narrow(row);
  from->scale = side ? 1 : scale_of(row);
  from->added = side ? (uint64_t)row->sub : (uint64_t)row->imm;
  from->size = space == SHARED ? at->shared_bytes : at->local_bytes;
  from->first = space == SHARED ? run->shared_first : NULL;
  from->latest[0] = side ? &row->pattern2 : &row->pattern;
  from->latest[1] = row->op == COPY ? NULL : &row->pattern2;
  for (int i = 0; i < 2; ++i) from->known[i] = from->latest[i] ? *from->latest[i] : -1;
  find(run, side ? &row->c : &row->a, &from->a);
  if (from->global) {
    if (!from->narrow) find_pair(run, &row->a, &from->a, &from->high_a);
    find_pair(run, &row->b, &from->b, &from->high_b);
  } else if (!side) {
    find(run, &row->b, &from->b);
  }
  // A constant is added once.
  if (!from->global && !side && !from->b.step) from->added += from->b.held.at[0];
  if (side || (!from->global && !from->b.step)) from->b.words = NULL;
}

// What is added to the addresses of a warp in a window, which count from its first byte: others' wrap around.
static inline uint32_t added_in(const Side *from, int64_t w) {
  return (uint32_t)from->added - (from->first ? (uint32_t)from->first[w] : 0);
}

// The addresses of a warp; lanes that take no part have that of the lowest one that does, which is harmless.
static void addresses_of(Side *from, int64_t w, Lanes lanes, uint64_t *addresses) {
  const uint32_t *a = words_for(&from->a, w), *b = from->b.words ? words_for(&from->b, w) : ZERO.at;
  if (from->global) {
    const uint32_t *high_b = words_for(&from->high_b, w), *high_a = from->narrow ? ZERO.at : words_for(&from->high_a, w);
    EACH_LANE addresses[l] = pair_of(a[l], high_a[l]) + pair_of(b[l], high_b[l]) + from->added;
  } else {
    const uint32_t scale = from->scale, added = added_in(from, w);
    EACH_LANE addresses[l] = a[l] * scale + b[l] + added;
  }
  if (lanes != ~0u) {
    const uint64_t harmless = addresses[lowest(lanes)];
    EACH_LANE addresses[l] = lanes & BIT[l] ? addresses[l] : harmless;
  }
}

// Whether words lie as the offsets of a pattern from the first of its lanes; the others' are of no concern.
static bool lie(const uint32_t *words, const Shape *shape, Lanes lanes) {
  const uint32_t first = words[lowest(lanes)];
  uint32_t differs = 0;
  if (lanes == ~0u) {
    for (int l = 0; l < LANES; ++l) differs |= (words[l] - first) ^ (uint32_t)shape->offsets[l];
  } else {
    for (int l = 0; l < LANES; ++l) differs |= lanes & BIT[l] ? (words[l] - first) ^ (uint32_t)shape->offsets[l] : 0;
  }
  return !differs;
}

static bool all_same(const uint32_t *words, Lanes lanes) {
  const uint32_t first = words[lowest(lanes)];
  uint32_t differs = 0;
  if (lanes == ~0u) {
    for (int l = 0; l < LANES; ++l) differs |= words[l] ^ first;
  } else {
    for (int l = 0; l < LANES; ++l) differs |= lanes & BIT[l] ? words[l] ^ first : 0;
  }
  return !differs;
}

// Whether an access of this shape from `base` on lies in the buffer that the instruction accessed before, aligned, with
// content.
static bool quick_region(const Run *run, const Instruction *row, uint64_t base, const Shape *shape) {
  if (row->region < 0 || row->region >= run->state->regions) return false;
  const Region *region = run->region_table + row->region;
  const int64_t width = width_of(row), from = (int64_t)(base - (uint64_t)region->region_start);
  if (from < 0 || from > region->region_size) return false;
  if (from + shape->low < 0 || from + shape->high > region->region_size - width) return false;
  if (((uint64_t)from | shape->bits) & (uint64_t)(width - 1)) return false;
  if (!region->region_pending) return true;
  const int64_t chunk = (from + shape->low) >> CHUNK_BITS;
  return chunk == (from + shape->high) >> CHUNK_BITS && !run->pending[region->region_chunk + chunk];
}

// Whether a warp's access has a pattern that is known, and is ordinary; then `base` is its first lane's address.
static bool quick(const Run *run, const Instruction *row, Side *from, int64_t pattern, int64_t w, Lanes lanes,
                  uint64_t *base) {
  if (pattern < 0 || run->log_masks[pattern] != lanes) return false;
  const Shape *shape = run->log_shapes + pattern;
  if (!shape->narrow) return false;
  const int first = lowest(lanes);
  const uint32_t *a = words_for(&from->a, w);
  if (from->global) {
    // The lanes differ in `a` alone, and none of its lower words carries into the upper one.
    if (from->b.step == LANES || from->high_b.step == LANES) return false;
    const uint32_t *high_a = from->narrow ? ZERO.at : words_for(&from->high_a, w);
    const uint64_t pair = pair_of(word_for(&from->b, w), word_for(&from->high_b, w));
    if (a[first] + (int64_t)shape->low < 0 || a[first] + (int64_t)shape->high > UINT32_MAX) return false;
    if (!lie(a, shape, lanes) || (!from->narrow && !all_same(high_a, lanes))) return false;
    *base = pair_of(a[first], high_a[first]) + pair + from->added;
    return quick_region(run, row, *base, shape);
  }
  Words found;
  const uint32_t scale = from->scale, added = added_in(from, w);
  if (from->b.words) {
    const uint32_t *b = words_for(&from->b, w);
    EACH_LANE found.at[l] = a[l] * scale + b[l];
    a = found.at;
  } else if (scale != 1) {
    EACH_LANE found.at[l] = a[l] * scale;
    a = found.at;
  }
  if (!lie(a, shape, lanes)) return false;
  *base = a[first] + added;
  const int64_t low = (int64_t)*base + shape->low, high = (int64_t)*base + shape->high, width = width_of(row);
  return low >= 0 && high <= from->size - width && !((*base | shape->bits) & (uint64_t)(width - 1));
}

// Compute the addresses of all warps; false if any is not ordinary. Of accesses in a known pattern only the first lane's
// address is computed. The other side of a copy from global to shared memory is checked first, as side 1.
static bool check(Run *run, Instruction *row, Side *from, int side) {
  const State *at = run->state;
  for (int64_t member = 0; member < at->members; ++member) {
    const int64_t w = run->batch[member];
    Lanes lanes = run->active[w] & lanes_of(run, row->guard, w);
    run->lane_sets[side * at->warps + member] = lanes;
    // In a copy, only lanes whose source is valid read.
    if (!side) lanes &= lanes_of(run, row->in0, w);
    if (!lanes) continue;
    uint64_t *addresses = (uint64_t *)run->addresses + (side * at->warps + member) * LANES;
    int which = 0;
    while (which < 2 && !quick(run, row, from, from->known[which], w, lanes, addresses)) ++which;
    if (which < 2) {
      run->lane_sets[side * at->warps + member] |= (int64_t)(which + 1) << WHICH;
      continue;
    }
    addresses_of(from, w, lanes, addresses);
    if (!(from->global ? in_global(run, row, addresses) : within(addresses, from->size, width_of(row)))) return false;
  }
  return true;
}

static void count_guarded(const Run *run, const Instruction *row, int64_t w, Lanes lanes) {
  if (row->guard != ALWAYS) run->guarded[run->guards[row - run->code] * run->state->warps + w] += count(lanes);
}

// Where a warp's elements are: bytes from `memory` on, and from there to the second and later words of an element.
typedef struct {
  uint8_t *memory;
  const Shape *shape;
  const uint64_t *at;  // Of each lane, if there is no shape.
  int64_t step;
} Elements;

static inline uint64_t offset_of(const Elements *elements, int l) {
  return elements->shape ? (uint64_t)(int64_t)elements->shape->offsets[l] : elements->at[l];
}

// Record a warp's access, and find its elements. `given` is its entry in `lane_sets`; `lanes` take part.
static Elements recorded(Run *run, Instruction *row, Side *from, int64_t w, int space, uint64_t *addresses, int64_t given,
                         Lanes lanes) {
  const int64_t which = given >> WHICH;
  int64_t pattern;
  if (which) {
    pattern = from->known[which - 1];
    note_row(run, row - run->code, w, addresses[0], pattern, space);
  } else {
    pattern = note(run, row - run->code, w, addresses, lanes, space, *from->latest[0]);
    if (pattern != *from->latest[0] && from->latest[1]) *from->latest[1] = *from->latest[0];
    *from->latest[0] = pattern;
  }
  const Shape *shape = run->log_shapes + pattern;
  Elements found = {run->arena, shape->narrow ? shape : NULL, addresses, 4};
  const uint64_t base = addresses[which ? 0 : lowest(lanes)];
  if (space == LOCAL) {
    // Interleaved: word, then thread. Each of its lanes has another word at the same address.
    const uint64_t threads = (uint64_t)run->state->warps * LANES, first = (uint64_t)w * LANES;
    found.step = (int64_t)threads * 4;
    found.memory = (uint8_t *)run->local_memory;
    if (shape->kind == SAME && width_of(row) >= 4) {
      found.shape = &IN_ORDER;
      found.memory += ((base >> 2) * threads + first) * 4;
      return found;
    }
    if (which) EACH_LANE addresses[l] = base + (uint64_t)(int64_t)shape->offsets[l];
    EACH_LANE addresses[l] = ((addresses[l] >> 2) * threads + first + (uint64_t)l) * 4 + (addresses[l] & 3);
    found.shape = NULL;
    return found;
  }
  const uint64_t start = space == SHARED ? (uint64_t)run->shared_base[w] : 0 - (uint64_t)run->origin[0];
  if (space == SHARED) found.memory = run->shared_memory;
  if (found.shape)
    found.memory += base + start;
  else
    EACH_LANE addresses[l] += start;
  return found;
}

static inline uint32_t word_at(const uint8_t *memory) {
  uint32_t word;
  memcpy(&word, memory, 4);
  return word;
}

// Read words of all lanes, group by group.
static inline void gather_shape(const uint8_t *memory, const Shape *shape, uint32_t *out) {
  if (shape->kind == SAME) {
    splat(out, word_at(memory));
    return;
  }
  for (int g = 0; g < GROUPS; ++g) {
    const int32_t *offsets = shape->offsets + g * GROUP;
    uint32_t *part = out + g * GROUP;
    if (shape->groups[g] == CONSECUTIVE) {
      memcpy(part, memory + offsets[0], sizeof(uint32_t) * GROUP);
    } else if (shape->groups[g] == SAME) {
      const uint32_t word = word_at(memory + offsets[0]);
      for (int l = 0; l < GROUP; ++l) part[l] = word;
    } else {
      for (int l = 0; l < GROUP; ++l) part[l] = word_at(memory + offsets[l]);
    }
  }
}

// Read the words `further` after the first of each element; elements of less than a word are extended.
static void gather(const Instruction *row, const Elements *from, int further, uint32_t *out) {
  const uint8_t *memory = from->memory + further * from->step;
  const int64_t width = width_of(row);
  if (width < 4) {
    const uint32_t sign = is_signed(row) ? (width == 2 ? 0x8000 : 0x80) : 0;
    for (int l = 0; l < LANES; ++l) {
      const uint64_t place = offset_of(from, l);
      uint32_t value = memory[place];
      if (width == 2) value |= (uint32_t)memory[place + 1] << 8;
      out[l] = value - ((value & sign) << 1);
    }
  } else if (from->shape) {
    gather_shape(memory, from->shape, out);
  } else {
    for (int l = 0; l < LANES; ++l) out[l] = word_at(memory + from->at[l]);
  }
}

// Write a word of each element; if lanes hit the same place, the highest lane wins.
static void scatter(const Instruction *row, const Elements *to, int further, Lanes lanes, const uint32_t *words) {
  uint8_t *memory = to->memory + further * to->step;
  const int64_t width = width_of(row);
  if (width >= 4 && to->shape && lanes == ~0u) {
    for (int g = 0; g < GROUPS; ++g) {
      const int32_t *offsets = to->shape->offsets + g * GROUP;
      const uint32_t *part = words + g * GROUP;
      if (to->shape->groups[g] == CONSECUTIVE)
        memcpy(memory + offsets[0], part, sizeof(uint32_t) * GROUP);
      else
        for (int l = 0; l < GROUP; ++l) memcpy(memory + offsets[l], part + l, 4);
    }
    return;
  }
  // A narrow element is the word's lower bytes.
  const size_t size = width < 4 ? (size_t)width : 4;
  for (int l = 0; l < LANES; ++l)
    if (lanes & BIT[l]) memcpy(memory + offset_of(to, l), words + l, size);
}

static int64_t parts_of(const Instruction *row) { return most(width_of(row) >> 2, 1); }

static bool run_plain(Run *run, Instruction *row) {
  const int space = row->sub == GENERIC ? GLOBAL : (int)row->sub;
  Side side;
  begin_side(run, row, row->sub, 0, &side);
  if (!check(run, row, &side, 0)) return false;
  const int64_t parts = parts_of(row);
  const bool stores = row->op == STORE;
  Operand value[4];
  if (stores)
    for (int i = 0; i < parts; ++i) find_part(run, &row->c, i, &value[i]);
  Words held;
  for (int64_t member = 0; member < run->state->members; ++member) {
    const int64_t w = run->batch[member], given = run->lane_sets[member];
    const Lanes lanes = (Lanes)given;
    if (!lanes) continue;
    count_guarded(run, row, w, lanes);
    const Elements found =
        recorded(run, row, &side, w, space, (uint64_t *)run->addresses + member * LANES, given, lanes);
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
  const State *at = run->state;
  Side sides[2];
  begin_side(run, row, GLOBAL, 0, &sides[0]);
  begin_side(run, row, SHARED, 1, &sides[1]);
  if (!check(run, row, &sides[1], 1) || !check(run, row, &sides[0], 0)) return false;
  for (int64_t member = 0; member < at->members; ++member) {
    const int64_t w = run->batch[member], into = at->warps + member;
    const Lanes lanes = (Lanes)run->lane_sets[member];
    if (!lanes) continue;
    count_guarded(run, row, w, lanes);
    const Lanes valid = lanes & lanes_of(run, row->in0, w);
    uint64_t *addresses = (uint64_t *)run->addresses;
    Elements from = {0}, to;
    if (valid) from = recorded(run, row, &sides[0], w, GLOBAL, addresses + member * LANES, run->lane_sets[member], valid);
    to = recorded(run, row, &sides[1], w, SHARED, addresses + into * LANES, run->lane_sets[into], lanes);
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
  Side side;
  begin_side(run, row, row->sub, 0, &side);
  if (!check(run, row, &side, 0)) return false;
  const bool is_long = width_of(row) >> 3;
  Operand first[2], second[2];
  for (int i = 0; i <= is_long; ++i) {
    find_part(run, &row->c, i, &first[i]);
    find_part(run, &row->d, i, &second[i]);
  }
  for (int64_t member = 0; member < run->state->members; ++member) {
    const int64_t w = run->batch[member], given = run->lane_sets[member];
    const Lanes lanes = (Lanes)given;
    if (!lanes) continue;
    count_guarded(run, row, w, lanes);
    const Elements found =
        recorded(run, row, &side, w, space, (uint64_t *)run->addresses + member * LANES, given, lanes);
    const uint32_t *a = words_for(&first[0], w), *high_a = is_long ? words_for(&first[1], w) : ZERO.at;
    const uint32_t *b = words_for(&second[0], w), *high_b = is_long ? words_for(&second[1], w) : ZERO.at;
    Words before[2] = {{{0}}};
    Lanes swapped = 0;
    for (int l = 0; l < LANES; ++l) {
      if (!(lanes & BIT[l])) continue;
      uint8_t *memory = found.memory + offset_of(&found, l);
      const uint64_t old = pair_of(word_at(memory), is_long ? word_at(memory + found.step) : 0);
      const uint64_t x = pair_of(a[l], high_a[l]), y = pair_of(b[l], high_b[l]);
      const uint64_t after = updated(row->flush_out, old, x, y, is_long);
      if (old == x) swapped |= BIT[l];
      memcpy(memory, &after, 4);
      if (is_long) memcpy(memory + found.step, (const uint8_t *)&after + 4, 4);
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
