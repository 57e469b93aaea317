// Sets of integers as runs: sorted, disjoint, half-open intervals. The memory phase keeps footprints in this form, so that a
// long run costs as much as a short one (memory/footprint.py).
#include "core.h"

typedef struct {
  int64_t start, end;
} Run;

EXPORT const char *drywarp_digest(void) { return DRYWARP_DIGEST; }

// The first run from `at` on that ends after `start`, found by doubling steps.
static int64_t ending_after(const Run *runs, int64_t count, int64_t at, int64_t start) {
  if (at >= count || runs[at].end > start) return at;
  int64_t low = at, step = 1;
  while (low + step < count && runs[low + step].end <= start) {
    low += step;
    step *= 2;
  }
  int64_t high = least(low + step, count);
  while (high - low > 1) {
    int64_t middle = (low + high) / 2;
    if (runs[middle].end <= start)
      low = middle;
    else
      high = middle;
  }
  return high;
}

// Append a run. It extends the last one if they touch and it does not start before that one.
static int64_t append(Run *runs, int64_t count, Run next) {
  if (count > 0 && runs[count - 1].start <= next.start && next.start <= runs[count - 1].end)
    runs[count - 1].end = most(runs[count - 1].end, next.end);
  else
    runs[count++] = next;
  return count;
}

// The parts of `left` that lie in `right` (`wanted` 1) or outside it (0). `found` has room for both sets' runs; returns how
// many there are.
EXPORT int64_t drywarp_common_or_other(
    const Run *left, int64_t left_count, const Run *right, int64_t right_count, int64_t wanted, Run *found) {
  int64_t count = 0, at = 0;
  for (int64_t i = 0; i < left_count; ++i) {
    int64_t start = left[i].start, end = left[i].end;
    at = ending_after(right, right_count, at, start);
    for (int64_t k = at; start < end;) {
      bool inside = k < right_count && right[k].start <= start;
      int64_t until = end;
      if (inside)
        until = least(end, right[k++].end);
      else if (k < right_count)
        until = least(end, right[k].start);
      if (inside == (wanted == 1) && until > start) {
        if (count > 0 && found[count - 1].end == start)
          found[count - 1].end = until;
        else
          found[count++] = (Run){start, until};
      }
      start = most(start, until);
    }
  }
  return count;
}

// All members of either of two sets. `found` has room for both sets' runs; returns how many there are.
EXPORT int64_t drywarp_both(
    const Run *left, int64_t left_count, const Run *right, int64_t right_count, Run *found) {
  int64_t count = 0;
  for (int64_t i = 0, j = 0; i < left_count || j < right_count;) {
    bool from_left = j == right_count || (i < left_count && left[i].start <= right[j].start);
    count = append(found, count, from_left ? left[i++] : right[j++]);
  }
  return count;
}

// For each of several sets in turn, the members that neither an earlier set nor the set `kept` has.
//
// Set n consists of the runs `begin[n]` to `end[n]`, all moved by `move[n]`. `kept` holds `count` runs; it and `other` have
// room for all that is added. `fresh[n]` becomes the number of new members of set n; returns the number of runs in `kept`.
EXPORT int64_t drywarp_new_members(
    const Run *runs, const int64_t *begin, const int64_t *end, const int64_t *move, int64_t sets, Run *kept,
    int64_t count, Run *other, int64_t *fresh) {
  Run *one = kept, *two = other;
  for (int64_t n = 0; n < sets; ++n) {
    fresh[n] = 0;
    int64_t at = 0;
    for (int64_t i = begin[n]; i < end[n]; ++i) {
      int64_t start = runs[i].start + move[n], stop = runs[i].end + move[n];
      at = ending_after(one, count, at, start);
      int64_t missing = stop - start;
      for (int64_t k = at; k < count && one[k].start < stop; ++k)
        missing -= least(stop, one[k].end) - most(start, one[k].start);
      fresh[n] += missing;
    }
    if (fresh[n] == 0) continue;
    int64_t made = 0;
    for (int64_t i = begin[n], j = 0; i < end[n] || j < count;) {
      bool from_set = j == count || (i < end[n] && runs[i].start + move[n] <= one[j].start);
      Run next = from_set ? (Run){runs[i].start + move[n], runs[i].end + move[n]} : one[j];
      made = append(two, made, next);
      if (from_set)
        ++i;
      else
        ++j;
    }
    Run *swapped = one;
    one = two;
    two = swapped;
    count = made;
  }
  if (one != kept) memcpy(kept, one, (size_t)count * sizeof(Run));
  return count;
}

// The end of the ascending part that begins at `at`.
static int64_t end_of_part(const Run *runs, int64_t at, int64_t count) {
  if (at == count) return at;
  for (++at; at < count && runs[at].start >= runs[at - 1].start;) ++at;
  return at;
}

// Bring runs in any order into the form of a set; returns how many remain. Ascending parts, as loops leave them, are merged in
// pairs; `spare` has room for as many runs.
static int64_t sorted_set(Run *runs, int64_t count, Run *spare) {
  Run *from = runs, *to = spare;
  while (end_of_part(from, 0, count) < count) {
    int64_t made = 0;
    for (int64_t at = 0; at < count;) {
      int64_t middle = end_of_part(from, at, count), end = end_of_part(from, middle, count);
      for (int64_t i = at, j = middle; i < middle || j < end;) {
        bool first = j == end || (i < middle && from[i].start <= from[j].start);
        made = append(to, made, first ? from[i++] : from[j++]);
      }
      at = end;
    }
    count = made;
    Run *swapped = from;
    from = to;
    to = swapped;
  }
  if (from != runs) memcpy(runs, from, (size_t)count * sizeof(Run));
  return count;
}

// The sector of an address; addresses before zero round down, as elsewhere.
static inline int64_t sector_of(int64_t address, int64_t sector) {
  int64_t number = address / sector;
  return number - (address % sector < 0);
}

// The sectors that active lanes touch from a base address of `phase`, as a set; `found` and `spare` have room for the lanes.
static int64_t sectors_of(
    const int64_t *offset, const uint8_t *active, int64_t lanes, int64_t phase, int64_t sector, Run *found, Run *spare) {
  int64_t count = 0;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    int64_t number = sector_of(phase + offset[lane], sector);
    if (active[lane]) count = append(found, count, (Run){number, number + 1});
  }
  return sorted_set(found, count, spare);
}

// The sectors that groups of requests touch, as runs of sector numbers.
//
// A request has a `base` address and the number of a `pattern`, whose lanes' `offsets` and activity (`active`, 0 or 1) lie in
// rows of `lanes`. Group n are the requests `first[n]` to `first[n + 1]`, all moved by `shift` bytes; its runs become those
// from `until[n]` to `until[n + 1]`. `found` and `spare` have room for every active lane of every request and for `lanes` more.
// Returns the number of runs.
EXPORT int64_t drywarp_touched(
    const int64_t *base, const int64_t *pattern, const int64_t *offsets, const uint8_t *active, int64_t lanes,
    const int64_t *first, int64_t groups, int64_t shift, int64_t sector, Run *found, Run *spare, int64_t *until) {
  // Requests of a loop differ by whole sectors as a rule: what one touches is kept for the next, at the start of `found`.
  Run *alike = found, *all = found + lanes;
  int64_t runs_alike = 0, pattern_alike = -1, phase_alike = 0, total = 0;
  for (int64_t n = 0; n < groups; ++n) {
    until[n] = total;
    Run *mine = all + total;
    int64_t count = 0;
    for (int64_t row = first[n]; row < first[n + 1]; ++row) {
      int64_t whole = sector_of(base[row] + shift, sector), phase = base[row] + shift - whole * sector;
      if (pattern[row] != pattern_alike || phase != phase_alike) {
        pattern_alike = pattern[row];
        phase_alike = phase;
        int64_t at = pattern_alike * lanes;
        runs_alike = sectors_of(offsets + at, active + at, lanes, phase, sector, alike, spare);
      }
      for (int64_t i = 0; i < runs_alike; ++i)
        count = append(mine, count, (Run){alike[i].start + whole, alike[i].end + whole});
    }
    total += sorted_set(mine, count, spare);
  }
  until[groups] = total;
  memmove(found, all, (size_t)total * sizeof(Run));
  return total;
}
