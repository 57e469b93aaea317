// Instructions on single and double precision, and conversions between them and integers. Rounding is to nearest even.
#include "emulator.h"

#include <math.h>

// The smaller one, or the larger one; -0 is below +0. A single NaN is ignored if `quiet`, else it wins.
static inline uint32_t least_single(uint32_t a, uint32_t b, bool quiet, bool smaller) {
  const float x = single_of(a), y = single_of(b);
  const bool same = x == y, negative = (int32_t)a < 0;
  const uint32_t low = (x < y) | (same & negative) ? a : b, high = (y < x) | (same & !negative) ? a : b;
  const uint32_t result = smaller ? low : high;
  if (quiet) return x != x ? b : y != y ? a : result;
  return x != x ? a : y != y ? b : result;
}

// Doubles to integers; from bit 2 of `how` on: 0 to the nearest (even), 1 towards zero, 2 down, 3 up.
static void round_doubles(int64_t how, double *values) {
  switch (how >> 2) {
    case 1: EACH_LANE values[l] = trunc(values[l]); break;
    case 2: EACH_LANE values[l] = floor(values[l]); break;
    case 3: EACH_LANE values[l] = ceil(values[l]); break;
    default: EACH_LANE values[l] = rint(values[l]); break;
  }
}

// Integers of 32 bits, clamped to their range; NaN gives `invalid`.
static inline uint32_t to_integer(double value, bool is_signed, uint32_t invalid) {
  if (value != value) return invalid;
  const double low = is_signed ? -2147483648.0 : 0.0, high = is_signed ? 2147483647.0 : 4294967295.0;
  const double within = value > low ? (value < high ? value : high) : low;
  return (uint32_t)(int64_t)within;
}

// Rounded up: the nearest, or the next above it if that lies below.
static inline uint32_t from_unsigned_up(uint32_t value) {
  const float nearest = (float)value;
  return bits_of(nearest) + ((double)nearest < (double)value);
}

// a * b + c rounded down or up: the nearest, or its neighbour if that lies on the other side.
static inline uint32_t fused_directed(uint32_t a, uint32_t b, uint32_t c, bool up) {
  const float nearest = fmaf(single_of(a), single_of(b), single_of(c));
  const double product = (double)single_of(a) * (double)single_of(b), addend = single_of(c);
  const double total = product + addend;
  // The rounding error of the sum of doubles (Knuth), and the distance of the nearest from the sum.
  const double other = total - product, rest = (product - (total - other)) + (addend - other);
  const double above = (double)nearest - total;
  const uint32_t bits = made(nearest);
  uint32_t result = bits;
  if (up ? above < rest : rest < above) {
    // Larger numbers have larger bit patterns, except that negative ones are in reverse order.
    const bool negative = (int32_t)bits < 0;
    result = (bits & 0x7FFFFFFF) == 0 ? (up ? 1 : 0x80000001) : bits + (negative == up ? ~0u : 1);
  }
  if (up || total != 0) return result;
  // A zero sum is negative, except that of two positive zeros.
  return (uint32_t)((long_bits_of(product) | long_bits_of(addend)) >> 32) & 0x80000000;
}

// Denormals flushed (bit 0), and clamped to 0..1 (bit 1), where NaN becomes zero.
static void finish_singles(int64_t how, uint32_t *values) {
  if (how & 1) EACH_LANE values[l] = flushed(values[l]);
  if (!(how & 2)) return;
  EACH_LANE {
    const uint32_t positive = single_of(values[l]) > 0 ? values[l] : 0;
    values[l] = single_of(positive) < 1 ? positive : 0x3F800000;
  }
}

// A reciprocal or a square root, computed in double precision.
static void special(int64_t op, const uint32_t *a, uint32_t *out) {
  if (op == RECIPROCAL) {
    EACH_LANE out[l] = made((float)(1.0 / (double)single_of(a[l])));
  } else if (op == ROOT) {
    EACH_LANE out[l] = made((float)sqrt((double)single_of(a[l])));
  } else {
    EACH_LANE out[l] = made((float)(1.0 / sqrt((double)single_of(a[l]))));
  }
}

// Conversions that go through doubles.
static void convert(const Instruction *row, const uint32_t *low, const uint32_t *high, uint32_t *out) {
  _Alignas(64) double values[LANES];
  if (high) {
    EACH_LANE values[l] = double_of(pair_of(low[l], high[l]));
  } else {
    EACH_LANE values[l] = single_of(low[l]);
  }
  if (row->op != FROM_DOUBLE) round_doubles(row->sub, values);
  if (row->op == TO_INTEGER) {
    const uint32_t invalid = (uint32_t)row->imm;
    const bool is_signed = row->sub & 1;
    EACH_LANE out[l] = to_integer(values[l], is_signed, invalid);
  } else {
    EACH_LANE out[l] = made((float)values[l]);
  }
}

static void run_float(const Run *run, const Instruction *row, int64_t w, const uint32_t *a, const uint32_t *b,
                    const uint32_t *c, uint32_t *out) {
  const int64_t how = row->sub;
  switch (row->op) {
    case FLOAT_FUSED:
      if (how) {
        EACH_LANE out[l] = fused_directed(a[l], b[l], c[l], how == 2);
      } else {
        EACH_LANE out[l] = made(fmaf(single_of(a[l]), single_of(b[l]), single_of(c[l])));
      }
      break;
    case FLOAT_ADD: EACH_LANE out[l] = made(single_of(a[l]) + single_of(b[l])); break;
    case FLOAT_MULTIPLY: EACH_LANE out[l] = made(single_of(a[l]) * single_of(b[l])); break;
    case FLOAT_MINIMUM: {
      const Lanes smaller = lanes_of(run, row->in0, w);
      EACH_LANE out[l] = made(single_of(least_single(a[l], b[l], how, (smaller & BIT[l]) != 0)));
      break;
    }
    case FROM_SIGNED: EACH_LANE out[l] = bits_of((float)(int32_t)a[l]); break;
    case FROM_UNSIGNED: EACH_LANE out[l] = bits_of((float)a[l]); break;
    case FROM_UNSIGNED_UP: EACH_LANE out[l] = from_unsigned_up(a[l]); break;
    default: special(row->op, a, out); break;
  }
}

void run_single(Run *run, const Instruction *row) {
  Operand a, b, c;
  const bool wide = row->op == FROM_DOUBLE || (row->op == TO_INTEGER && row->sub & 2);
  const bool converts = wide || row->op == TO_INTEGER || row->op == ROUND_FLOAT;
  if (wide) {
    find_pair(run, &row->a, &a, &b);
  } else {
    find(run, &row->a, &a);
    find(run, &row->b, &b);
  }
  find(run, &row->c, &c);
  Words held;
  for (int64_t member = 0; member < run->state->members; ++member) {
    const int64_t w = run->batch[member];
    const Lanes lanes = executing(run, row, w);
    if (!lanes) continue;
    uint32_t *out = target(run, row, 0, w, lanes, &held);
    if (converts)
      convert(row, words_for(&a, w), wide ? words_for(&b, w) : NULL, out);
    else
      run_float(run, row, w, words_for(&a, w), words_for(&b, w), words_for(&c, w), out);
    if (row->flush_out) finish_singles(row->flush_out, out);
    finish(run, row, 0, w, lanes, out);
  }
}

// Double-precision results.

// From the upper word of a double: the upper word of its reciprocal, or of that of its root.
static inline uint32_t upper_reciprocal(bool root, uint32_t value) {
  const double x = double_of(pair_of(0, value));
  return (uint32_t)(long_made(1.0 / (root ? sqrt(x) : x)) >> 32);
}

static void run_upper(Run *run, const Instruction *row) {
  Operand a;
  find(run, &row->a, &a);
  Words held;
  for (int64_t member = 0; member < run->state->members; ++member) {
    const int64_t w = run->batch[member];
    const Lanes lanes = executing(run, row, w);
    if (!lanes) continue;
    const uint32_t *x = words_for(&a, w);
    uint32_t *out = target(run, row, 0, w, lanes, &held);
    EACH_LANE out[l] = upper_reciprocal(row->op == UPPER_RECIPROCAL_ROOT, x[l]);
    finish(run, row, 0, w, lanes, out);
  }
}

static void doubles_of(Operand *low, Operand *high, int64_t w, double *into) {
  const uint32_t *lower = words_for(low, w), *upper = words_for(high, w);
  EACH_LANE into[l] = double_of(pair_of(lower[l], upper[l]));
}

static void run_arithmetic(int64_t op, double *x, const double *y, const double *z) {
  if (op == DOUBLE_ADD) {
    EACH_LANE x[l] = x[l] + y[l];
  } else if (op == DOUBLE_MULTIPLY) {
    EACH_LANE x[l] = x[l] * y[l];
  } else {
    EACH_LANE x[l] = fma(x[l], y[l], z[l]);
  }
}

static void convert_to_double(int64_t op, const uint32_t *a, double *into) {
  if (op == DOUBLE_FROM_SIGNED) {
    EACH_LANE into[l] = (int32_t)a[l];
  } else if (op == DOUBLE_FROM_UNSIGNED) {
    EACH_LANE into[l] = a[l];
  } else {
    EACH_LANE into[l] = single_of(a[l]);
  }
}

void run_double(Run *run, const Instruction *row) {
  const int64_t op = row->op;
  if (op == UPPER_RECIPROCAL || op == UPPER_RECIPROCAL_ROOT) {
    run_upper(run, row);
    return;
  }
  const bool arithmetic = op == DOUBLE_ADD || op == DOUBLE_MULTIPLY || op == DOUBLE_FUSED;
  Operand a, b, c, d, e, f;
  if (arithmetic) {
    find_pair(run, &row->a, &a, &b);
    find_pair(run, &row->b, &c, &d);
    find_pair(run, &row->c, &e, &f);
  } else {
    find(run, &row->a, &a);
  }
  _Alignas(64) double x[LANES], y[LANES], z[LANES];
  Words held[2];
  for (int64_t member = 0; member < run->state->members; ++member) {
    const int64_t w = run->batch[member];
    const Lanes lanes = executing(run, row, w);
    if (!lanes) continue;
    if (arithmetic) {
      doubles_of(&a, &b, w, x);
      doubles_of(&c, &d, w, y);
      if (op == DOUBLE_FUSED) doubles_of(&e, &f, w, z);
      run_arithmetic(op, x, y, z);
    } else {
      convert_to_double(op, words_for(&a, w), x);
    }
    for (int further = 0; further < 2; ++further) {
      uint32_t *out = target(run, row, further, w, lanes, &held[further]);
      EACH_LANE out[l] = (uint32_t)(long_made(x[l]) >> 32 * further);
      finish(run, row, further, w, lanes, out);
    }
  }
}
