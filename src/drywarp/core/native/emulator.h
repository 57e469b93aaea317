// What the parts of the emulator's loop share: lanes, masks, sources and destinations of instructions.
//
// A warp's register is 32 words in a row. A set of lanes is a mask with a bit per lane. Every operation is a loop over the
// lanes, which the compiler turns into vector instructions; the same sources are compiled for several processors
// (emulate_v3.c, emulate_v4.c), and VARIANT tells them apart.
#ifndef DRYWARP_EMULATOR_H
#define DRYWARP_EMULATOR_H

#include <stddef.h>

#include "core.h"

// A pattern of addresses whose offsets fit into 32 bits, prepared for those that access it again. Eight lanes are a group.
enum { GROUP = 8, GROUPS = 32 / GROUP };
typedef struct {
  int32_t offsets[32];  // From the lowest lane that takes part; the others have 0.
  int32_t low, high;       // The extremes of them.
  uint32_t bits;           // The bits that any of them has.
  uint8_t groups[GROUPS];  // How the lanes of a group lie: IRREGULAR, SAME, CONSECUTIVE.
  uint8_t kind;            // How all of them lie.
  bool narrow;             // Whether they fit.
  uint8_t rest[14];
} Shape;

#include "layout.h"

// The tables that Python makes have as many columns as it says.
_Static_assert(sizeof(Instruction) == 8 * COLUMNS && offsetof(Instruction, a) == 8 * A, "layout.h");
_Static_assert(sizeof(State) == 8 * STATE_COLUMNS && sizeof(Run) == 8 * PLACES, "layout.h");
_Static_assert(sizeof(Entry) == 8 * BLOCK_COLUMNS && sizeof(Region) == 8 * REGION_COLUMNS, "layout.h");

#ifndef VARIANT
#define VARIANT v1
#define BASELINE
#endif
#define JOINED_(a, b) a##_##b
#define JOINED(a, b) JOINED_(a, b)
#define OF_VARIANT(name) JOINED(name, VARIANT)
#define advance OF_VARIANT(advance)
#define choose OF_VARIANT(choose)
#define drop OF_VARIANT(drop)
#define enough_slots OF_VARIANT(enough_slots)
#define note OF_VARIANT(note)
#define park OF_VARIANT(park)
#define part OF_VARIANT(part)
#define refresh OF_VARIANT(refresh)
#define release OF_VARIANT(release)
#define release_barriers OF_VARIANT(release_barriers)
#define run_access OF_VARIANT(run_access)
#define run_double OF_VARIANT(run_double)
#define run_end OF_VARIANT(run_end)
#define run_predicates OF_VARIANT(run_predicates)
#define run_single OF_VARIANT(run_single)
#define run_wide OF_VARIANT(run_wide)
#define run_words OF_VARIANT(run_words)
#define whole_blocks OF_VARIANT(whole_blocks)

// No lane depends on another, though a destination may be one of the sources.
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
#define EACH_LANE INDEPENDENT for (int l = 0; l < LANES; ++l)

typedef uint32_t Lanes;  // A mask.
_Static_assert(sizeof(Shape) == SHAPE_BYTES, "layout.h");
typedef struct {
  _Alignas(64) uint32_t at[LANES];
} Words;
typedef struct {
  _Alignas(64) uint64_t at[LANES];
} Wide;
typedef struct {
  _Alignas(32) uint8_t at[LANES];
} Truths;  // A byte per lane, 0 or 1.

// The bit of each lane in a mask.
static const uint32_t BIT[LANES] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,  1u << 8,  1u << 9,  1u << 10,
    1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15, 1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21,
    1u << 22, 1u << 23, 1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

static inline int count(Lanes lanes) { return __builtin_popcount(lanes); }
static inline int lowest(Lanes lanes) { return __builtin_ctz(lanes); }

static inline Lanes packed(const uint8_t *truths) {
  Lanes lanes = 0;
  for (int part = 0; part < 4; ++part) {
    uint64_t eight;
    memcpy(&eight, truths + 8 * part, 8);
    lanes |= (Lanes)(eight * UINT64_C(0x0102040810204080) >> 56) << 8 * part;
  }
  return lanes;
}

static inline void unpack(Lanes lanes, uint8_t *truths) {
  for (int l = 0; l < LANES; ++l) truths[l] = (lanes & BIT[l]) != 0;
}

static inline void splat(uint32_t *words, uint32_t value) {
  for (int l = 0; l < LANES; ++l) words[l] = value;
}

// Shifts by the width or more give zeros or copies of the sign.
static inline uint32_t left(uint32_t x, uint32_t n) { return n < 32 ? x << (n & 31) : 0; }
static inline uint32_t right(uint32_t x, uint32_t n) { return n < 32 ? x >> (n & 31) : 0; }
static inline uint32_t right_signed(uint32_t x, uint32_t n) { return (uint32_t)((int32_t)x >> (n < 32 ? n : 31)); }
static inline uint64_t left_wide(uint64_t x, uint64_t n) { return n < 64 ? x << (n & 63) : 0; }
static inline uint64_t right_wide(uint64_t x, uint64_t n) { return n < 64 ? x >> (n & 63) : 0; }
static inline uint64_t right_wide_signed(uint64_t x, uint64_t n) { return (uint64_t)((int64_t)x >> (n < 64 ? n : 63)); }
static inline uint64_t pair_of(uint32_t low, uint32_t high) { return (uint64_t)high << 32 | low; }
// Denormals become zeros of the same sign.
static inline uint32_t flushed(uint32_t x) { return (x & 0x7F800000) ? x : x & 0x80000000; }

static inline float single_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}
static inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}
// The bits of a result; every NaN has the same (CUDA's own constants, math_constants.h).
static inline uint32_t made(float value) { return value == value ? bits_of(value) : 0x7FFFFFFF; }
static inline double double_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, 8);
  return value;
}
static inline uint64_t long_bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  return bits;
}

static inline uint64_t long_made(double value) {
  return value == value ? long_bits_of(value) : UINT64_C(0xFFF8000000000000);
}

// Predicates.

// The lanes of warp `w` for which a predicate source holds.
static inline Lanes lanes_of(const Run *run, int64_t predicate, int64_t w) {
  if (predicate == ALWAYS) return ~0u;
  if (predicate == NEVER) return 0;
  const int64_t number = predicate >> 1, warps = run->state->warps;
  Lanes lanes;
  if (number < UNIFORM_PREDICATE)
    lanes = packed(run->flags + (number * warps + w) * LANES);
  else
    lanes = run->flags[run->state->uniform_flags + (number - UNIFORM_PREDICATE) * warps + w] ? ~0u : 0;
  return predicate & 1 ? ~lanes : lanes;
}

// Write a predicate of warp `w` for `lanes`; a uniform one takes the value of lane 0.
static inline void put_lanes(const Run *run, int64_t destination, int64_t w, Lanes value, Lanes lanes) {
  if (destination < 0) return;
  const int64_t warps = run->state->warps;
  if (destination >= UNIFORM_PREDICATE) {
    run->flags[run->state->uniform_flags + (destination - UNIFORM_PREDICATE) * warps + w] = value & 1;
    return;
  }
  uint8_t *place = run->flags + (destination * warps + w) * LANES;
  if (lanes != ~0u) value = (packed(place) & ~lanes) | (value & lanes);
  unpack(value, place);
}

// The lanes of warp `w` that execute an instruction: active ones whose guard holds; they are counted.
static inline Lanes executing(const Run *run, const Instruction *row, int64_t w) {
  Lanes lanes = run->active[w];
  if (row->guard != ALWAYS) {
    lanes &= lanes_of(run, row->guard, w);
    run->guarded[run->guards[row - run->code] * run->state->warps + w] += count(lanes);
  }
  return lanes;
}

// Sources.

// A source of an instruction: where the words of each warp are.
typedef struct {
  const uint32_t *words;
  int64_t step;         // From one warp to the next; 0 for a constant, whose modifiers are applied already.
  const Source *after;  // Its modifiers, if they are still to be applied.
  bool single;          // A uniform register: a word for all lanes.
  Words held;
} Operand;

static inline void modify(const Source *source, const uint32_t *words, uint32_t *into) {
  const uint32_t keep = (uint32_t)source->keep, flip = (uint32_t)source->flip, plus = (uint32_t)source->plus;
  if (source->changed & FLUSHED) {
    EACH_LANE into[l] = ((flushed(words[l]) & keep) ^ flip) + plus;
  } else {
    EACH_LANE into[l] = ((words[l] & keep) ^ flip) + plus;
  }
}

// The register `further` after a source's, or a constant. `modified`: with the source's modifiers.
static inline void locate(const Run *run, const Source *source, int further, uint32_t constant, bool modified,
                          Operand *operand) {
  const int64_t warps = run->state->warps, index = source->index + further;
  operand->after = modified && source->changed ? source : NULL;
  operand->single = false;
  operand->step = LANES;
  if (source->kind == REGISTER) {
    operand->words = run->register_words + index * warps * LANES;
  } else if (source->kind == CONSTANT) {
    splat(operand->held.at, constant);
    if (operand->after) modify(source, operand->held.at, operand->held.at);
    operand->words = operand->held.at;
    operand->step = 0;
    operand->after = NULL;
  } else if (source->kind == UNIFORM) {
    operand->words = run->register_words + run->state->uniform_base + index * warps;
    operand->step = 1;
    operand->single = true;
  } else {
    operand->words = run->register_words + run->state->special_base + index * warps * LANES;
  }
}

// A source with its modifiers; the register `further` after it without any.
static inline void find(const Run *run, const Source *source, Operand *operand) {
  locate(run, source, 0, (uint32_t)source->value, true, operand);
}
static inline void find_part(const Run *run, const Source *source, int further, Operand *operand) {
  locate(run, source, further, (uint32_t)source->value, false, operand);
}
// The two halves of a 64-bit source; modifiers apply to the upper half, as those of doubles do.
static inline void find_pair(const Run *run, const Source *source, Operand *low, Operand *high) {
  locate(run, source, 0, (uint32_t)source->value, false, low);
  locate(run, source, 1, (uint32_t)source->high, true, high);
}

// The 32 words of a source for warp `w`, until it is asked for another warp's.
static inline const uint32_t *words_for(Operand *operand, int64_t w) {
  const uint32_t *words = operand->words + w * operand->step;
  if (operand->single) {
    splat(operand->held.at, *words);
    words = operand->held.at;
  }
  if (operand->after) {
    modify(operand->after, words, operand->held.at);
    words = operand->held.at;
  }
  return words;
}

// The word of all lanes of a source that is the same for them: a constant or a uniform register.
static inline uint32_t word_for(Operand *operand, int64_t w) {
  return operand->after ? words_for(operand, w)[0] : operand->words[w * operand->step];
}

// Destinations.

// Where to write the register `further` after an instruction's destination for all lanes: the register itself if all
// lanes execute, else `held`; `finish` then takes it over.
static inline uint32_t *target(const Run *run, const Instruction *row, int further, int64_t w, Lanes lanes, Words *held) {
  if (lanes != ~0u || row->dst < 0 || row->dst_uniform) return held->at;
  return run->register_words + ((row->dst + further) * run->state->warps + w) * LANES;
}

static inline void finish(const Run *run, const Instruction *row, int further, int64_t w, Lanes lanes, const uint32_t *made) {
  if (row->dst < 0) return;
  const int64_t place = (row->dst + further) * run->state->warps + w;
  if (row->dst_uniform) {
    run->register_words[run->state->uniform_base + place] = made[0];
    return;
  }
  uint32_t *words = run->register_words + place * LANES;
  if (words == made) return;
  EACH_LANE words[l] = lanes & BIT[l] ? made[l] : words[l];
}

// The parts of the loop; each runs its instruction for all warps of the batch.

void run_words(Run *run, const Instruction *row);
void run_wide(Run *run, const Instruction *row);
void run_single(Run *run, const Instruction *row);
void run_double(Run *run, const Instruction *row);
void run_predicates(Run *run, const Instruction *row);
// A load, store, copy or atomic; false, with nothing done, if it is not ordinary.
bool run_access(Run *run, Instruction *row);
// Record an access of warp `w`; returns the number of its pattern, which is probably `latest`. `lanes` are not empty, and
// the others have the address of the lowest.
int64_t note(Run *run, int64_t k, int64_t w, const uint64_t *addresses, Lanes lanes, int space, int64_t latest);
// The same for a pattern that is known.
static inline void note_row(Run *run, int64_t k, int64_t w, uint64_t base, int64_t pattern, int space) {
  const int64_t row = run->state->accesses++;
  run->log_instruction[row] = (int32_t)k;
  run->log_warp[row] = (int32_t)(run->state->first_warp + w);
  run->log_base[row] = (int64_t)base;
  run->log_pattern[row] = (int32_t)pattern;
  run->log_space[row] = (int8_t)space;
}

// Instead of a PC: groups were placed; too few slots; the NumPy handler must execute it; or finish it.
enum { MOVED = -1, LACKS_ROOM = -2, UNUSUAL = -3, MUST_RELEASE = -4 };
// The instruction that ends a block: the PC at which the batch continues, or one of these.
int64_t run_end(Run *run, const Instruction *row);

// Groups of lanes: each is at a place of the arrays, slot * warps + warp.
enum { EMPTY, RUNS, AT_CONVERGENCE, AT_WARPSYNC, AT_BARRIER };
enum { ROTATE_EVERY = 512, CHOSEN = 100, BARRIER_REGISTERS = 16 };
// The block that begins at a PC; NULL if it is not decoded yet.
static inline const Entry *entered(const Run *run, int64_t pc) {
  if (pc < 0 || pc >> 4 >= run->state->instructions) return NULL;
  const Entry *entry = run->entries + (pc >> 4);
  return entry->block_number >= 0 ? entry : NULL;
}
int64_t choose(Run *run);
void refresh(Run *run);
bool enough_slots(const Run *run);
void part(Run *run, int64_t member, Lanes taken, int64_t target, int64_t fall);
void drop(Run *run, int64_t member, Lanes gone, int64_t fall);
void park(Run *run, int64_t member, Lanes lanes, int64_t pc, int state, int64_t argument);
void release(Run *run);
bool whole_blocks(const Run *run);
void release_barriers(Run *run);

#endif
