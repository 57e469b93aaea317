// The record of accesses. Lane offsets of accesses repeat endlessly, so each access stores the number of its pattern: the
// offsets from its first lane, and the active lanes. There is room for all patterns, which the caller sees to.
#include "emulator.h"

#define MASK_WEIGHT UINT64_C(0x1E3779B97F4A7C15)

// Where the search for a pattern begins in the table.
static int64_t begin_of(const Run *run, const uint64_t *offsets, Lanes lanes) {
  uint64_t mixed = lanes * MASK_WEIGHT;
  for (int l = 0; l < LANES; ++l) mixed += offsets[l] * (uint64_t)run->log_weights[l];
  mixed = (mixed ^ (uint64_t)((int64_t)mixed >> 29)) * MASK_WEIGHT;
  return ((int64_t)mixed >> 20) & (run->state->table_size - 1);
}

static bool is_pattern(const Run *run, int64_t pattern, const uint64_t *offsets, Lanes lanes) {
  const uint64_t *known = (const uint64_t *)run->log_offsets + pattern * LANES;
  uint64_t differs = run->log_masks[pattern] ^ lanes;
  for (int l = 0; l < LANES; ++l) differs |= known[l] ^ offsets[l];
  return differs == 0;
}

static uint8_t kind_of(const uint64_t *offsets, int count) {
  uint64_t any = 0, other = 0;
  for (int l = 0; l < count; ++l) {
    any |= offsets[l] - offsets[0];
    other |= (offsets[l] - offsets[0]) ^ 4 * (uint64_t)l;
  }
  return any == 0 ? SAME : other == 0 ? CONSECUTIVE : IRREGULAR;
}

static void prepare(Shape *shape, const uint64_t *offsets) {
  int64_t low = 0, high = 0;
  uint64_t bits = 0;
  for (int l = 0; l < LANES; ++l) {
    low = least(low, (int64_t)offsets[l]);
    high = most(high, (int64_t)offsets[l]);
    bits |= offsets[l];
    shape->offsets[l] = (int32_t)offsets[l];
  }
  shape->narrow = low >= INT32_MIN && high <= INT32_MAX;
  shape->low = (int32_t)low;
  shape->high = (int32_t)high;
  shape->bits = (uint32_t)bits;
  shape->kind = kind_of(offsets, LANES);
  for (int g = 0; g < GROUPS; ++g) shape->groups[g] = kind_of(offsets + g * GROUP, GROUP);
}

// The number of a pattern; a new one is stored.
static int64_t pattern_of(Run *run, const uint64_t *offsets, Lanes lanes) {
  State *at = run->state;
  int64_t place = begin_of(run, offsets, lanes);
  for (; run->log_table[place]; place = (place + 1) & (at->table_size - 1)) {
    const int64_t known = run->log_table[place] - 1;
    if (is_pattern(run, known, offsets, lanes)) return known;
  }
  const int64_t pattern = at->patterns++;
  run->log_table[place] = (int32_t)(pattern + 1);
  memcpy(run->log_offsets + pattern * LANES, offsets, sizeof(uint64_t) * LANES);
  run->log_masks[pattern] = lanes;
  prepare(run->log_shapes + pattern, offsets);
  return pattern;
}

int64_t note(Run *run, int64_t k, int64_t w, const uint64_t *addresses, Lanes lanes, int space, int64_t latest) {
  const uint64_t base = addresses[lowest(lanes)];
  Wide offsets;
  EACH_LANE offsets.at[l] = addresses[l] - base;
  int64_t pattern = latest;
  if (latest < 0 || !is_pattern(run, latest, offsets.at, lanes)) pattern = pattern_of(run, offsets.at, lanes);
  note_row(run, k, w, base, pattern, space);
  return pattern;
}

#ifdef BASELINE

// Record an access of several warps, a row for each: the warps, the bytes that their lanes access (32 of each row), and
// the lanes. There must be room for them.
EXPORT int64_t drywarp_note_rows(Run *run, const int64_t *warps, const uint64_t *addresses, const uint32_t *masks,
                                 int64_t rows, int64_t k, int64_t space) {
  int64_t latest = -1;
  for (int64_t row = 0; row < rows; ++row) {
    if (!masks[row]) continue;
    const uint64_t *given = addresses + row * LANES, base = given[lowest(masks[row])];
    Wide safe;
    for (int l = 0; l < LANES; ++l) safe.at[l] = masks[row] & BIT[l] ? given[l] : base;
    latest = note(run, k, warps[row], safe.at, masks[row], (int)space, latest);
  }
  return 0;
}

// Enter all patterns into the table, which must be empty; its length is a power of two.
EXPORT int64_t drywarp_fill_table(Run *run) {
  for (int64_t pattern = 0; pattern < run->state->patterns; ++pattern) {
    int64_t place = begin_of(run, (const uint64_t *)run->log_offsets + pattern * LANES, run->log_masks[pattern]);
    while (run->log_table[place]) place = (place + 1) & (run->state->table_size - 1);
    run->log_table[place] = (int32_t)(pattern + 1);
  }
  return 0;
}

// Enter `count` patterns of another record; `numbers` gets the number of each in this one. There must be room for all.
EXPORT int64_t drywarp_enter_patterns(Run *run, const uint64_t *offsets, const uint32_t *masks, int64_t count,
                                      int32_t *numbers) {
  for (int64_t i = 0; i < count; ++i) numbers[i] = (int32_t)pattern_of(run, offsets + i * LANES, masks[i]);
  return 0;
}

// A part of a run that is searched for words of global memory that another part stores: `bytes` per lane by instruction, 0
// for those that do not matter; the number of the part that stores each word from the address `start` on, 0 for none; the
// addresses between which there are such words.
typedef struct {
  const int64_t *bytes;
  uint16_t *owners, part;
  int64_t start, *bounds;
} Search;

// Whether all lanes take part and one begins where the one before ends, as in most accesses: they touch whole words in a row.
static bool is_dense(const int64_t *offsets, Lanes lanes, int64_t first, int64_t width) {
  if (lanes != ~0u || (first | width) & 3) return false;
  int64_t wrong = 0;
  EACH_LANE wrong |= offsets[l] ^ l * width;
  return !wrong;
}

// The same for words in a row, of which there are `count`.
static bool are_foreign(uint16_t *owners, int64_t count, uint16_t part, bool claiming) {
  bool foreign = false;
  for (int64_t i = 0; i < count; ++i) foreign |= (owners[i] != 0) & (owners[i] != part);
  if (claiming)
    for (int64_t i = 0; i < count; ++i) owners[i] = part;
  return foreign;
}

// Whether another part stores a word that the lanes of an access touch. With `claiming` they become this part's.
static bool is_foreign(const Run *run, int64_t row, int64_t width, const Search *search, bool claiming) {
  const int64_t *offsets = run->log_offsets + run->log_pattern[row] * LANES;
  const Lanes all = run->log_masks[run->log_pattern[row]];
  const int64_t begin = run->log_base[row], stop = begin + LANES * width;
  if (is_dense(offsets, all, begin - search->start, width)) {
    if (claiming) {
      search->bounds[0] = least(search->bounds[0], begin);
      search->bounds[1] = most(search->bounds[1], stop);
    }
    if (claiming || (begin >= search->bounds[0] && stop <= search->bounds[1]))
      return are_foreign(search->owners + ((begin - search->start) >> 2), (stop - begin) >> 2, search->part, claiming);
  }
  for (Lanes lanes = all; lanes; lanes &= lanes - 1) {
    const int64_t first = run->log_base[row] + offsets[lowest(lanes)], end = first + width;
    if (claiming) {
      search->bounds[0] = least(search->bounds[0], first);
      search->bounds[1] = most(search->bounds[1], end);
    } else if (first < search->bounds[0] || end > search->bounds[1]) {
      // One that only reaches into the words at the bounds counts as one that meets them.
      if (end <= search->bounds[0] || first >= search->bounds[1]) continue;
      return true;
    }
    for (int64_t word = (first - search->start) >> 2; word <= (end - 1 - search->start) >> 2; ++word) {
      if (search->owners[word] && search->owners[word] != search->part) return true;
      if (claiming) search->owners[word] = search->part;
    }
  }
  return false;
}

// Claim the words that a part of a run stores, or look whether it loads words that another part has claimed; returns 1 as
// soon as there is such a word.
EXPORT int64_t drywarp_find_shared(const Run *run, const int64_t *bytes, uint16_t *owners, int64_t *bounds, int64_t start,
                                   int64_t part, int64_t claiming) {
  const Search search = {bytes, owners, (uint16_t)part, start, bounds};
  for (int64_t row = 0; row < run->state->accesses; ++row) {
    const int64_t width = bytes[run->log_instruction[row]], base = run->log_base[row];
    if (!width || run->log_space[row] != GLOBAL) continue;
    const Shape *shape = run->log_shapes + run->log_pattern[row];
    if (!claiming && shape->narrow && (base + shape->high + width <= bounds[0] || base + shape->low >= bounds[1])) continue;
    if (is_foreign(run, row, width, &search, claiming)) return 1;
  }
  return 0;
}

// The stable order of `count` numbers from 0 to `kinds` - 1. `bounds` has kinds + 1 zeros, and gets where each kind begins
// in `order`; `next` has room for as many.
EXPORT int64_t drywarp_order_by(const int32_t *keys, int64_t count, int64_t kinds, int64_t *bounds, int64_t *next,
                                int64_t *order) {
  for (int64_t i = 0; i < count; ++i) ++bounds[keys[i] + 1];
  for (int64_t key = 0; key < kinds; ++key) bounds[key + 1] += bounds[key];
  memcpy(next, bounds, sizeof(int64_t) * (size_t)(kinds + 1));
  for (int64_t i = 0; i < count; ++i) order[next[keys[i]]++] = i;
  return 0;
}

// Add how many accesses each warp has: that of warp n to `counts[n + 1]`. `places` has the new number of each warp, or -1 if
// its rows are dropped; or it is NULL.
EXPORT int64_t drywarp_count_accesses(const Run *run, const int32_t *places, int64_t *counts) {
  for (int64_t i = 0; i < run->state->accesses; ++i) {
    const int32_t number = places ? places[run->log_warp[i]] : run->log_warp[i];
    if (number >= 0) ++counts[number + 1];
  }
  return 0;
}

// All accesses by warp, and in each warp as recorded: their columns. `next` is where the rows of each warp begin; `numbers`
// has the number of each pattern in the columns, or it is NULL. Records of other warps may be sorted at the same time.
EXPORT int64_t drywarp_sort_accesses(const Run *run, const int32_t *places, const int32_t *numbers, int64_t *next,
                                     int32_t *instruction, int32_t *warp, int64_t *base, int32_t *pattern, int8_t *space) {
  for (int64_t i = 0; i < run->state->accesses; ++i) {
    const int32_t number = places ? places[run->log_warp[i]] : run->log_warp[i];
    if (number < 0) continue;
    const int64_t to = next[number]++;
    instruction[to] = run->log_instruction[i];
    warp[to] = number;
    base[to] = run->log_base[i];
    pattern[to] = numbers ? numbers[run->log_pattern[i]] : run->log_pattern[i];
    space[to] = run->log_space[i];
  }
  return 0;
}

#endif
