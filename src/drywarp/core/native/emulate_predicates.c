// Instructions with predicate results: compares, predicate logic, and the check before a division.
#include "emulator.h"

static inline Lanes combined(int64_t how, Lanes a, Lanes b) {
  if (how == 0) return a & b;
  return how == 1 ? a | b : a ^ b;
}

// Any function of three predicates: bit a << 2 | b << 1 | c of the table is its value.
static inline Lanes looked_up(int64_t table, Lanes a, Lanes b, Lanes c) {
  Lanes result = 0;
  for (int index = 0; index < 8; ++index) {
    if (!(table >> index & 1)) continue;
    result |= (index & 4 ? a : ~a) & (index & 2 ? b : ~b) & (index & 1 ? c : ~c);
  }
  return result;
}

// Exponents at the ends of the range, or too far apart; also of zeros, whose sign the short way would lose.
static Lanes needs_slow_division(const uint32_t *x, const uint32_t *y) {
  Truths slow;
  EACH_LANE {
    const int32_t ex = x[l] >> 23 & 0xFF, ey = y[l] >> 23 & 0xFF, apart = ex - ey;
    slow.at[l] = (ex == 0xFF) | (ey == 0xFF) | (ey == 0) | (ey > 252) | (ex < 24) | (apart > 125) | (apart < -124);
  }
  return packed(slow.at);
}

static void spread_to_predicates(const Run *run, const Instruction *row, int64_t w, Lanes lanes, const uint32_t *value) {
  for (int number = 0; number < 7; ++number) {
    if (!(row->imm >> number & 1)) continue;
    const uint32_t bit = left(1, (uint32_t)(number + row->sub));
    Truths holds;
    EACH_LANE holds.at[l] = (value[l] & bit) != 0;
    put_lanes(run, number, w, packed(holds.at), lanes);
  }
}

// The lanes for which the first source is less than, equal to, and unordered with the second.
typedef struct {
  Lanes less, same, unordered;
} Comparison;

static Comparison compare_words(bool is_signed, const uint32_t *a, const uint32_t *b) {
  Truths less, same;
  const uint32_t sign = is_signed ? 0 : 0x80000000;
  EACH_LANE less.at[l] = (int32_t)(a[l] ^ sign) < (int32_t)(b[l] ^ sign);
  EACH_LANE same.at[l] = a[l] == b[l];
  return (Comparison){packed(less.at), packed(same.at), 0};
}

static Comparison compare_singles(const uint32_t *a, const uint32_t *b) {
  Truths less, same, unordered;
  EACH_LANE less.at[l] = single_of(a[l]) < single_of(b[l]);
  EACH_LANE same.at[l] = single_of(a[l]) == single_of(b[l]);
  EACH_LANE unordered.at[l] = (single_of(a[l]) != single_of(a[l])) | (single_of(b[l]) != single_of(b[l]));
  return (Comparison){packed(less.at), packed(same.at), packed(unordered.at)};
}

static Comparison compare_pairs(int64_t op, bool is_signed, const Wide *p, const Wide *q) {
  Truths less, same, unordered;
  const uint64_t sign = is_signed ? 0 : UINT64_C(1) << 63;
  if (op == COMPARE_WIDE) {
    EACH_LANE less.at[l] = (int64_t)(p->at[l] ^ sign) < (int64_t)(q->at[l] ^ sign);
    EACH_LANE same.at[l] = p->at[l] == q->at[l];
    return (Comparison){packed(less.at), packed(same.at), 0};
  }
  EACH_LANE {
    const double x = double_of(p->at[l]), y = double_of(q->at[l]);
    less.at[l] = x < y;
    same.at[l] = x == y;
    unordered.at[l] = (x != x) | (y != y);
  }
  return (Comparison){packed(less.at), packed(same.at), packed(unordered.at)};
}

static void pair_for(Operand *low, Operand *high, int64_t w, Wide *into) {
  const uint32_t *lower = words_for(low, w), *upper = words_for(high, w);
  EACH_LANE into->at[l] = pair_of(lower[l], upper[l]);
}

// What a comparison gives: `second` is the result for the lower halves of a longer one.
static Lanes holding(const Instruction *row, Comparison found, Lanes second) {
  Lanes result = row->imm & LESS ? found.less : 0;
  if (row->imm & GREATER) result |= ~(found.less | found.same | found.unordered);
  if (row->sub & 8)
    result |= row->sub & 16 ? second : found.same & second;
  else if (row->imm & EQUAL)
    result |= found.same;
  if (row->imm & UNORDERED) result |= found.unordered;
  return result;
}

void run_predicates(Run *run, const Instruction *row) {
  const int64_t op = row->op;
  const bool wide = op == COMPARE_WIDE || op == COMPARE_DOUBLE, is_signed = row->sub & 4;
  Operand a, b, c, d;
  if (wide) {
    find_pair(run, &row->a, &a, &b);
    find_pair(run, &row->b, &c, &d);
  } else {
    find(run, &row->a, &a);
    find(run, &row->b, &b);
  }
  for (int64_t member = 0; member < run->state->members; ++member) {
    const int64_t w = run->batch[member];
    const Lanes lanes = executing(run, row, w);
    if (!lanes) continue;
    if (op == REGISTER_TO_PREDICATES) {
      spread_to_predicates(run, row, w, lanes, words_for(&a, w));
      continue;
    }
    const Lanes given = lanes_of(run, row->in0, w), second = lanes_of(run, row->in1, w);
    Lanes result, complement;
    if (op == PREDICATE_LOGIC) {
      const Lanes third = lanes_of(run, row->in2, w);
      result = looked_up(row->imm, given, second, third);
      complement = looked_up(row->imm2, given, second, third);
    } else if (op == DIVISION_CHECK) {
      result = needs_slow_division(words_for(&a, w), words_for(&b, w));
      complement = 0;
    } else {
      Comparison found;
      if (wide) {
        Wide p, q;
        pair_for(&a, &b, w, &p);
        pair_for(&c, &d, w, &q);
        found = compare_pairs(op, is_signed, &p, &q);
      } else if (op == COMPARE_FLOAT) {
        found = compare_singles(words_for(&a, w), words_for(&b, w));
      } else {
        found = compare_words(is_signed, words_for(&a, w), words_for(&b, w));
      }
      result = holding(row, found, second);
      complement = combined(row->sub & 3, ~result, given);
      result = combined(row->sub & 3, result, given);
    }
    put_lanes(run, row->out0, w, result, lanes);
    put_lanes(run, row->out1, w, complement, lanes);
  }
}
