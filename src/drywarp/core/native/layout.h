// Generated from the emulator's `layout.py` by `header.py` beside it. Do not edit.
#ifndef DRYWARP_LAYOUT_H
#define DRYWARP_LAYOUT_H

#include <stdint.h>

enum { LANES = 32 };
#define FULL INT64_C(4294967295)
#define FAR INT64_C(1099511627776)
enum { A = 16, B = 24, C = 32, D = 40 };
enum { COLUMNS = 48 };
enum { CONSTANT = 0, REGISTER = 1, UNIFORM = 2, SPECIAL = 3 };
enum { MODIFIED = 1, FLUSHED = 2 };
enum { ALWAYS = -1, NEVER = -2 };
enum { NOWHERE = -1 };
enum { UNIFORM_PREDICATE = 8 };
enum { UNKNOWN = 0, NOTHING = 1 };
enum { MOVE = 10, ADD = 11, MULTIPLY_ADD = 12, MULTIPLY_ADD_CARRY = 13, LOGIC = 14, SHIFT_LEFT = 15, SHIFT_RIGHT = 16, FUNNEL_LEFT = 17, FUNNEL_RIGHT = 18, SELECT = 19, PERMUTE = 20, BIT_MASK = 21, EXTEND = 22, POPULATION = 23, LEADING_ONE = 24, REVERSE = 25, ABSOLUTE = 26, MINIMUM = 27, MAXIMUM_OF_SUM = 28, SHUFFLE = 29, VOTE = 30, TO_UNIFORM = 31, PREDICATES_TO_REGISTER = 32 };
enum { FIRST_WORDS = 10, LAST_WORDS = 39 };
enum { ADD_CARRY = 40, MULTIPLY_WIDE = 41, SCALED_ADD = 42, ADD_WIDE = 43, SELECT_WIDE = 44, MOVE_WIDE = 45 };
enum { FIRST_WIDE = 40, LAST_WIDE = 49 };
enum { FLOAT_ADD = 50, FLOAT_MULTIPLY = 51, FLOAT_FUSED = 52, FLOAT_MINIMUM = 53, RECIPROCAL = 54, RECIPROCAL_ROOT = 55, ROOT = 56, FROM_SIGNED = 57, FROM_UNSIGNED = 58, FROM_UNSIGNED_UP = 59, TO_INTEGER = 60, FROM_DOUBLE = 61, ROUND_FLOAT = 62 };
enum { FIRST_FLOAT = 50, LAST_FLOAT = 69 };
enum { DOUBLE_ADD = 70, DOUBLE_MULTIPLY = 71, DOUBLE_FUSED = 72, UPPER_RECIPROCAL = 73, UPPER_RECIPROCAL_ROOT = 74, DOUBLE_FROM_SIGNED = 75, DOUBLE_FROM_UNSIGNED = 76, DOUBLE_FROM_FLOAT = 77 };
enum { FIRST_DOUBLE = 70, LAST_DOUBLE = 79 };
enum { COMPARE = 80, COMPARE_WIDE = 81, COMPARE_FLOAT = 82, COMPARE_DOUBLE = 83, PREDICATE_LOGIC = 84, DIVISION_CHECK = 85, REGISTER_TO_PREDICATES = 86 };
enum { FIRST_TEST = 80, LAST_TEST = 89 };
enum { LOAD = 90, STORE = 91, COPY = 92, ATOMIC = 93 };
enum { FIRST_ACCESS = 90, LAST_ACCESS = 99 };
enum { CONVERGENCE_BEGINS = 100 };
enum { UNKNOWN_END = 110, BRANCH = 111, EXIT = 112, CONVERGENCE = 113, LEAVE_CONVERGENCE = 114, WARP_SYNC = 115, BLOCK_BARRIER = 116, JUMP = 117, RETURN = 118, YIELD = 119, GO_ON = 120 };
enum { FIRST_END = 110 };
enum { ADDS = 0, ADDS_FLOAT = 1, ADDS_DOUBLE = 2, EXCHANGES = 3, SWAPS = 4, MEETS = 5, JOINS = 6, DIFFERS = 7, COUNTS_UP = 8, COUNTS_DOWN = 9, LEAST = 10, LEAST_SIGNED = 11, MOST = 12, MOST_SIGNED = 13, ADDS_FLUSHED = 14 };
enum { OPERATION = 10 };
enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };
enum { STATE_COLUMNS = 41 };
enum { ENTER = 0, BODY = 1, NEXT = 2, CHOOSE = 3 };
enum { DONE = 0, NEEDS_STEP = 1, NEEDS_END = 2, NEEDS_DECODING = 3, STUCK = 4, OVER_LIMIT = 5, PAUSED = 6, NEEDS_ROOM = 7, NEEDS_SLOTS = 8, NEEDS_RELEASE = 9, NEEDS_LOOK = 10, NEEDS_CONTENT = 11 };
enum { IRREGULAR = 0, SAME = 1, CONSECUTIVE = 2 };
enum { SHAPE_BYTES = 160 };
enum { GLOBAL = 0, SHARED = 1, LOCAL = 2, GENERIC = 3 };
enum { EVENT = 4 };
enum { PASSES = 0, LAST_PASSES = 1, SIGNALS = 2, AWAITS = 3 };
enum { BLOCK_COLUMNS = 4 };
enum { REGION_COLUMNS = 4 };
enum { PLACES = 45 };

typedef struct {
  int64_t kind;
  int64_t index;
  int64_t value;
  int64_t high;
  int64_t keep;
  int64_t flip;
  int64_t plus;
  int64_t changed;
} Source;

typedef struct {
  int64_t mode;
  int64_t pc;
  int64_t at;
  int64_t members;
  int64_t total;
  int64_t next_other;
  int64_t others_wait;
  int64_t step;
  int64_t warp_steps;
  int64_t lane_steps;
  int64_t clock;
  int64_t live_version;
  int64_t lane_limit;
  int64_t pause_at;
  int64_t accesses;
  int64_t steps;
  int64_t patterns;
  int64_t first_warp;
  int64_t warps;
  int64_t per_block;
  int64_t uniform_base;
  int64_t uniform_flags;
  int64_t special_base;
  int64_t shared_bytes;
  int64_t local_bytes;
  int64_t pause_step;
  int64_t reduces;
  int64_t instructions;
  int64_t step_room;
  int64_t access_room;
  int64_t pattern_room;
  int64_t table_size;
  int64_t regions;
  int64_t slots;
  int64_t waited;
  int64_t since;
  int64_t look_after;
  int64_t looked;
  int64_t missing;
  int64_t turned;
  int64_t watched;
} State;

typedef struct {
  int64_t block_number;
  int64_t block_end;
  int64_t block_spins;
  int64_t block_accesses;
} Entry;

typedef struct {
  int64_t region_start;
  int64_t region_size;
  int64_t region_chunk;
  int64_t region_pending;
} Region;

typedef struct {
  int64_t op;
  int64_t sub;
  int64_t guard;
  int64_t dst;
  int64_t dst_uniform;
  int64_t out0;
  int64_t out1;
  int64_t in0;
  int64_t in1;
  int64_t in2;
  int64_t flush_out;
  int64_t imm;
  int64_t imm2;
  int64_t region;
  int64_t pattern;
  int64_t pattern2;
  Source a, b, c, d;
} Instruction;

typedef struct {
  State *state;
  Instruction *code;
  Entry *entries;
  uint32_t *register_words;
  uint8_t *flags;
  int64_t *batch;
  uint32_t *active;
  int64_t *guarded;
  uint32_t *scratch;
  uint8_t *arena;
  Region *region_table;
  uint8_t *pending;
  int64_t *origin;
  uint8_t *shared_memory;
  int64_t *shared_base;
  int64_t *shared_first;
  uint32_t *local_memory;
  int64_t *addresses;
  int64_t *lane_sets;
  int64_t *group_pc;
  uint32_t *group_mask;
  int8_t *group_state;
  int64_t *group_argument;
  int64_t *group_stamp;
  uint32_t *live;
  uint32_t *barriers;
  uint32_t *yielded;
  uint32_t *arrived;
  int64_t *earlier;
  uint32_t *votes;
  int64_t *group_slots;
  int32_t *guards;
  int32_t *log_instruction;
  int32_t *log_warp;
  int64_t *log_base;
  int32_t *log_pattern;
  int8_t *log_space;
  int32_t *log_step_block;
  int32_t *log_step_warp;
  uint8_t *log_step_lanes;
  int64_t *log_offsets;
  uint32_t *log_masks;
  Shape *log_shapes;
  int32_t *log_table;
  int64_t *log_weights;
} Run;

#endif
