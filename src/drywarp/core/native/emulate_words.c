// Instructions on 32-bit words (integers, bits, moves, exchange between lanes), and on 64-bit integers.
#include "emulator.h"

static inline uint32_t merge(uint32_t chooser, uint32_t a, uint32_t b) { return b ^ (chooser & (a ^ b)); }

// Any function of three bits: bit a << 2 | b << 1 | c of the table is its value.
static void logic(int64_t table, const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *out) {
  switch (table) {
    case 0xC0: EACH_LANE out[l] = a[l] & b[l]; return;
    case 0xFC: EACH_LANE out[l] = a[l] | b[l]; return;
    case 0x3C: EACH_LANE out[l] = a[l] ^ b[l]; return;
    case 0x96: EACH_LANE out[l] = a[l] ^ b[l] ^ c[l]; return;
    case 0xF8: EACH_LANE out[l] = a[l] | (b[l] & c[l]); return;
    case 0xFE: EACH_LANE out[l] = a[l] | b[l] | c[l]; return;
    case 0x80: EACH_LANE out[l] = a[l] & b[l] & c[l]; return;
    default: break;
  }
  uint32_t t[8];
  for (int i = 0; i < 8; ++i) t[i] = table >> i & 1 ? ~0u : 0;
  EACH_LANE {
    const uint32_t x = a[l], y = b[l], z = c[l];
    const uint32_t with = merge(y, merge(z, t[7], t[6]), merge(z, t[5], t[4]));
    const uint32_t without = merge(y, merge(z, t[3], t[2]), merge(z, t[1], t[0]));
    out[l] = merge(x, with, without);
  }
}

static inline uint32_t clamped(uint32_t amount, uint32_t limit, bool wraps) {
  if (wraps) return amount & (limit - 1);
  return amount < limit ? amount : limit;
}

// Bytes of c:a picked by the selector's nibbles; bit 3 of a nibble takes the sign of the byte instead.
static inline uint32_t permuted(uint32_t a, uint32_t selector, uint32_t c) {
  const uint64_t pair = pair_of(a, c);
  uint32_t result = 0;
  for (int k = 0; k < 4; ++k) {
    const uint32_t nibble = selector >> 4 * k, field = (uint32_t)(pair >> ((nibble & 7) << 3)) & 0xFF;
    result |= (nibble & 8 ? (field >> 7) * 0xFF : field) << 8 * k;
  }
  return result;
}

static inline uint32_t extended(uint32_t value, uint32_t width, bool wraps, bool is_unsigned) {
  const uint32_t rest = 32 - clamped(width, 32, wraps), moved = left(value, rest);
  return is_unsigned ? right(moved, rest) : right_signed(moved, rest);
}

static inline uint32_t leading_one(uint32_t x, bool is_signed, bool from_top) {
  if (is_signed) x ^= (uint32_t)((int32_t)x >> 31);
  const uint32_t above = x ? (uint32_t)__builtin_clz(x) : 32;
  if (from_top) return x ? above : ~0u;
  return 31 - above;
}

static inline uint32_t reversed(uint32_t x) {
  x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
  x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
  x = (x >> 4 & 0x0F0F0F0F) | (x & 0x0F0F0F0F) << 4;
  return __builtin_bswap32(x);
}

static inline uint32_t ones_of(uint32_t x) {
  x -= x >> 1 & 0x55555555;
  x = (x & 0x33333333) + (x >> 2 & 0x33333333);
  return ((x + (x >> 4)) & 0x0F0F0F0F) * 0x01010101 >> 24;
}

// The smaller one for `lanes`, the larger one for the others.
static void least_of(const uint32_t *a, const uint32_t *b, bool is_unsigned, Lanes lanes, uint32_t *out) {
  const uint32_t sign = is_unsigned ? 0x80000000 : 0;
  EACH_LANE {
    const bool less = (int32_t)(a[l] ^ sign) < (int32_t)(b[l] ^ sign);
    out[l] = less == ((lanes & BIT[l]) != 0) ? a[l] : b[l];
  }
}

// Values of other lanes (mode 0 up, 1 down, 2 butterfly, 3 indexed); returns the lanes whose source is in their segment.
static Lanes shuffle(int64_t mode, const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *out) {
  Lanes valid = 0;
  for (int l = 0; l < LANES; ++l) {
    const int step = b[l] & 31, clamp = c[l] & 31, segment = c[l] >> 8 & 31;
    const int low = l & segment, limit = low | (clamp & ~segment);
    int other = l - step;
    if (mode == 1) other = l + step;
    if (mode == 2) other = l ^ step;
    if (mode == 3) other = low | (step & ~segment);
    if (mode == 0 ? other >= limit : other <= limit)
      valid |= BIT[l];
    else
      other = l;
    out[l] = a[other & 31];
  }
  return valid;
}

static void pack_predicates(const Run *run, const Instruction *row, int64_t w, const uint32_t *a, uint32_t *out) {
  EACH_LANE out[l] = a[l] & (uint32_t)row->imm2;
  for (int number = 0; number < 7; ++number) {
    if (!(row->imm >> number & 1)) continue;
    const Lanes holds = lanes_of(run, number * 2, w);
    const uint32_t bit = left(1, (uint32_t)(number + row->sub));
    EACH_LANE out[l] |= holds & BIT[l] ? bit : 0;
  }
}

// An instruction for one warp; `a`, `b` and `c` are its sources' words. Exchanges may not write over their sources.
static void run_word(const Run *run, const Instruction *row, int64_t w, Lanes lanes, const uint32_t *a, const uint32_t *b,
                    const uint32_t *c, uint32_t *out) {
  const int64_t how = row->sub;
  const uint32_t imm = (uint32_t)row->imm;
  const bool wraps = how & 1;
  switch (row->op) {
    case ADD: EACH_LANE out[l] = a[l] + b[l] + c[l]; break;
    case MULTIPLY_ADD: EACH_LANE out[l] = a[l] * b[l] + c[l]; break;
    case MULTIPLY_ADD_CARRY: {
      const Lanes given = lanes_of(run, row->in0, w);
      EACH_LANE out[l] = a[l] * b[l] + c[l] + ((given & BIT[l]) != 0);
      break;
    }
    case LOGIC: {
      logic(imm, a, b, c, out);
      if (row->out0 < 0) break;
      Truths some;
      EACH_LANE some.at[l] = out[l] != 0;
      const Lanes given = lanes_of(run, row->in0, w), holds = packed(some.at);
      put_lanes(run, row->out0, w, how ? holds & given : holds | given, lanes);
      break;
    }
    case SHIFT_LEFT: EACH_LANE out[l] = left(a[l], clamped(b[l], imm, wraps)); break;
    case SHIFT_RIGHT:
      if (how & 2) {
        EACH_LANE out[l] = right_signed(c[l], clamped(b[l], imm, wraps));
      } else {
        EACH_LANE out[l] = right(c[l], clamped(b[l], imm, wraps));
      }
      break;
    case FUNNEL_LEFT:
      EACH_LANE out[l] = (uint32_t)(left_wide(pair_of(a[l], c[l]), clamped(b[l], imm, wraps)) >> 32);
      break;
    case FUNNEL_RIGHT:
      if (how & 2) {
        EACH_LANE out[l] = (uint32_t)right_wide_signed(pair_of(a[l], c[l]), clamped(b[l], imm, wraps));
      } else {
        EACH_LANE out[l] = (uint32_t)right_wide(pair_of(a[l], c[l]), clamped(b[l], imm, wraps));
      }
      break;
    case SELECT: {
      const Lanes given = lanes_of(run, row->in0, w);
      EACH_LANE out[l] = given & BIT[l] ? a[l] : b[l];
      break;
    }
    case PERMUTE: EACH_LANE out[l] = permuted(a[l], b[l], c[l]); break;
    case BIT_MASK:
      // The lower word of 2^32 is zero; minus one, it is all ones.
      EACH_LANE out[l] = left(left(1, clamped(b[l], 32, how)) - 1, clamped(a[l], 32, how));
      break;
    case EXTEND: EACH_LANE out[l] = extended(a[l], b[l], wraps, how & 2); break;
    case POPULATION: EACH_LANE out[l] = ones_of(a[l]); break;
    case LEADING_ONE: EACH_LANE out[l] = leading_one(a[l], how & 1, how & 2); break;
    case REVERSE: EACH_LANE out[l] = reversed(a[l]); break;
    case ABSOLUTE: EACH_LANE out[l] = (int32_t)a[l] < 0 ? 0 - a[l] : a[l]; break;
    case MINIMUM: least_of(a, b, how, lanes_of(run, row->in0, w), out); break;
    case MAXIMUM_OF_SUM: {
      Words sum;
      EACH_LANE sum.at[l] = a[l] + b[l];
      least_of(sum.at, c, how, lanes_of(run, row->in0, w), out);
      break;
    }
    case SHUFFLE: put_lanes(run, row->out0, w, shuffle(how, a, b, c, out), lanes); break;
    case VOTE: {
      const Lanes ballot = lanes_of(run, row->in0, w) & lanes;
      const bool everyone = ballot == lanes || (how == 2 && ballot == 0);
      splat(out, ballot);
      put_lanes(run, row->out0, w, (how == 0 ? ballot != 0 : everyone) ? ~0u : 0, lanes);
      break;
    }
    case TO_UNIFORM: {
      const uint32_t value = a[lowest(lanes)];
      Truths other;
      EACH_LANE other.at[l] = a[l] != value;
      put_lanes(run, row->out0, w, packed(other.at), lanes);
      splat(out, value);
      break;
    }
    case PREDICATES_TO_REGISTER: pack_predicates(run, row, w, a, out); break;
    default: memmove(out, a, sizeof(uint32_t) * LANES); break;
  }
}

void run_words(Run *run, const Instruction *row) {
  Operand a, b, c;
  find(run, &row->a, &a);
  find(run, &row->b, &b);
  find(run, &row->c, &c);
  // These read lanes or sources after they have written others.
  const bool apart = row->op == SHUFFLE || row->op == TO_UNIFORM || row->op == PREDICATES_TO_REGISTER;
  Words held;
  for (int64_t member = 0; member < run->state->members; ++member) {
    const int64_t w = run->batch[member];
    const Lanes lanes = executing(run, row, w);
    if (!lanes) continue;
    uint32_t *out = apart ? held.at : target(run, row, 0, w, lanes, &held);
    run_word(run, row, w, lanes, words_for(&a, w), words_for(&b, w), words_for(&c, w), out);
    finish(run, row, 0, w, lanes, out);
  }
}

// 64-bit integers, and sums whose carries make them so.

// A shifted addend: the word itself, the upper word of a pair, that of a sign-extended word, or the word inverted.
static inline uint32_t scaled(int64_t how, uint32_t value, uint32_t high, uint64_t shift) {
  if (how == 0) return (uint32_t)left_wide(value, shift);
  if (how == 3) return ~(uint32_t)left_wide(value, shift);
  const uint64_t pair = how == 1 ? pair_of(value, high) : (uint64_t)(int64_t)(int32_t)value;
  return (uint32_t)(left_wide(pair, shift) >> 32);
}

// Sums of words, and whether they reach 2^32 and twice that.
static void add_carries(Run *run, const Instruction *row) {
  Operand a, b, c;
  find(run, &row->a, &a);
  find(run, &row->b, &b);
  find(run, &row->c, &c);
  const int64_t how = row->sub;
  const uint64_t extra = (uint64_t)row->imm2, shift = (uint64_t)row->imm;
  Words held;
  for (int64_t member = 0; member < run->state->members; ++member) {
    const int64_t w = run->batch[member];
    const Lanes lanes = executing(run, row, w);
    if (!lanes) continue;
    const Lanes first = lanes_of(run, row->in0, w), second = lanes_of(run, row->in1, w);
    const uint32_t *x = words_for(&a, w), *y = words_for(&b, w), *z = words_for(&c, w);
    Wide total;
    if (row->op == SCALED_ADD) {
      EACH_LANE total.at[l] = (uint64_t)scaled(how, x[l], z[l], shift) + y[l];
    } else {
      EACH_LANE total.at[l] = (uint64_t)x[l] + y[l] + z[l];
    }
    Truths once, twice;
    uint32_t *out = target(run, row, 0, w, lanes, &held);
    EACH_LANE {
      const uint64_t sum = total.at[l] + extra + ((first & BIT[l]) != 0) + ((second & BIT[l]) != 0);
      out[l] = (uint32_t)sum;
      once.at[l] = sum >> 32 >= 1;
      twice.at[l] = sum >> 32 >= 2;
    }
    finish(run, row, 0, w, lanes, out);
    put_lanes(run, row->out0, w, packed(once.at), lanes);
    put_lanes(run, row->out1, w, packed(twice.at), lanes);
  }
}

static void multiply_wide(Run *run, const Instruction *row) {
  Operand a, b, c, d;
  find(run, &row->a, &a);
  find(run, &row->b, &b);
  find_pair(run, &row->c, &c, &d);
  Words held[2];
  for (int64_t member = 0; member < run->state->members; ++member) {
    const int64_t w = run->batch[member];
    const Lanes lanes = executing(run, row, w);
    if (!lanes) continue;
    const Lanes given = lanes_of(run, row->in0, w);
    const uint32_t *x = words_for(&a, w), *y = words_for(&b, w), *low = words_for(&c, w), *high = words_for(&d, w);
    Wide product, total;
    if (row->sub & 1) {
      EACH_LANE product.at[l] = (uint64_t)x[l] * y[l];
    } else {
      EACH_LANE product.at[l] = (uint64_t)((int64_t)(int32_t)x[l] * (int32_t)y[l]);
    }
    const uint32_t carry = row->in0 == NEVER ? 0 : given;
    EACH_LANE total.at[l] = product.at[l] + pair_of(low[l], high[l]) + ((carry & BIT[l]) != 0);
    if (row->out0 >= 0) {
      Truths over;
      EACH_LANE {
        const uint64_t before = product.at[l] + pair_of(low[l], high[l]);
        over.at[l] = (before < product.at[l]) | (total.at[l] < before);
      }
      put_lanes(run, row->out0, w, packed(over.at), lanes);
    }
    uint32_t *lower = target(run, row, 0, w, lanes, &held[0]);
    if (row->sub & 2) {
      EACH_LANE lower[l] = (uint32_t)(total.at[l] >> 32);
    } else {
      uint32_t *upper = target(run, row, 1, w, lanes, &held[1]);
      EACH_LANE {
        lower[l] = (uint32_t)total.at[l];
        upper[l] = (uint32_t)(total.at[l] >> 32);
      }
      finish(run, row, 1, w, lanes, upper);
    }
    finish(run, row, 0, w, lanes, lower);
  }
}

// Moves, sums and choices of 64-bit words.
static void run_pairs(Run *run, const Instruction *row) {
  Operand a, b, c, d, e, f;
  find_pair(run, &row->a, &a, &b);
  find_pair(run, &row->b, &c, &d);
  find_pair(run, &row->c, &e, &f);
  Words held[2];
  for (int64_t member = 0; member < run->state->members; ++member) {
    const int64_t w = run->batch[member];
    const Lanes lanes = executing(run, row, w);
    if (!lanes) continue;
    const uint32_t *low = words_for(&a, w), *high = words_for(&b, w);
    const uint32_t *other_low = words_for(&c, w), *other_high = words_for(&d, w);
    const uint32_t *third_low = words_for(&e, w), *third_high = words_for(&f, w);
    const Lanes given = row->op == SELECT_WIDE ? lanes_of(run, row->in0, w) : ~0u;
    const uint64_t added = row->op == ADD_WIDE ? ~UINT64_C(0) : 0;
    Wide total;
    EACH_LANE {
      const uint64_t x = pair_of(low[l], high[l]), y = pair_of(other_low[l], other_high[l]);
      total.at[l] = given & BIT[l] ? x + (y + pair_of(third_low[l], third_high[l]) & added) : y;
    }
    for (int further = 0; further < 2; ++further) {
      uint32_t *out = target(run, row, further, w, lanes, &held[further]);
      EACH_LANE out[l] = (uint32_t)(total.at[l] >> 32 * further);
      finish(run, row, further, w, lanes, out);
    }
  }
}

void run_wide(Run *run, const Instruction *row) {
  if (row->op == ADD_CARRY || row->op == SCALED_ADD)
    add_carries(run, row);
  else if (row->op == MULTIPLY_WIDE)
    multiply_wide(run, row);
  else
    run_pairs(run, row);
}
