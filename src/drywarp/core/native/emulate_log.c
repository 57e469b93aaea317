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

static int8_t kind_of(const uint64_t *offsets, Lanes lanes) {
  uint64_t any = 0, other = 0;
  for (int l = 0; l < LANES; ++l) {
    any |= offsets[l];
    other |= offsets[l] ^ 4 * (uint64_t)l;
  }
  if (any == 0) return SAME;
  return other == 0 && lanes == ~0u ? CONSECUTIVE : IRREGULAR;
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
  run->log_kinds[pattern] = kind_of(offsets, lanes);
  return pattern;
}

int64_t note(Run *run, int64_t k, int64_t w, const uint64_t *addresses, Lanes lanes, int space, int64_t latest) {
  const uint64_t base = addresses[lowest(lanes)];
  Wide offsets;
  EACH_LANE offsets.at[l] = addresses[l] - base;
  int64_t pattern = latest;
  if (latest < 0 || !is_pattern(run, latest, offsets.at, lanes)) pattern = pattern_of(run, offsets.at, lanes);
  const int64_t row = run->state->accesses++;
  run->log_instruction[row] = (int32_t)k;
  run->log_warp[row] = (int32_t)(run->state->first_warp + w);
  run->log_base[row] = (int64_t)base;
  run->log_pattern[row] = (int32_t)pattern;
  run->log_space[row] = (int8_t)space;
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

#endif
