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

// Append a run that does not start before the last one, which it extends if they touch.
static int64_t append(Run *runs, int64_t count, Run next) {
  if (count > 0 && next.start <= runs[count - 1].end)
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

// Sort runs by their starts: a heap sort, which needs no extra memory and has no bad worst case.
static void sort_runs(Run *runs, int64_t count) {
  for (int64_t heap = count / 2, left = count; left > 1;) {
    Run sinking;
    if (heap > 0) {
      sinking = runs[--heap];
    } else {
      sinking = runs[--left];
      runs[left] = runs[0];
    }
    int64_t parent = heap;
    for (int64_t child = 2 * parent + 1; child < left; child = 2 * parent + 1) {
      if (child + 1 < left && runs[child + 1].start > runs[child].start) ++child;
      if (runs[child].start <= sinking.start) break;
      runs[parent] = runs[child];
      parent = child;
    }
    runs[parent] = sinking;
  }
}

// The sector of an address; addresses before zero round down, as elsewhere.
static inline int64_t sector_of(int64_t address, int64_t sector) {
  int64_t number = address / sector;
  return number - (address % sector < 0);
}

// The sectors that groups of requests touch, as runs of sector numbers.
//
// A request has a `base` address and the number of a `pattern`, whose lanes' `offsets` and activity (`active`, 0 or 1) lie in
// rows of `lanes`. Group n are the requests `first[n]` to `first[n + 1]`, all moved by `shift` bytes; its runs become those
// from `until[n]` to `until[n + 1]`. `found` has room for every active lane of every request. Returns the number of runs.
EXPORT int64_t drywarp_touched(
    const int64_t *base, const int64_t *pattern, const int64_t *offsets, const uint8_t *active, int64_t lanes,
    const int64_t *first, int64_t groups, int64_t shift, int64_t sector, Run *found, int64_t *until) {
  int64_t total = 0;
  for (int64_t n = 0; n < groups; ++n) {
    const int64_t begin = total;
    until[n] = begin;
    bool ascends = true;
    for (int64_t row = first[n]; row < first[n + 1]; ++row) {
      const int64_t *offset = offsets + pattern[row] * lanes;
      const uint8_t *is_active = active + pattern[row] * lanes;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        if (!is_active[lane]) continue;
        int64_t number = sector_of(base[row] + offset[lane] + shift, sector);
        if (total > begin) {
          Run *last = &found[total - 1];
          if (last->start <= number && number <= last->end) {
            last->end = most(last->end, number + 1);
            continue;
          }
          if (number < last->start) ascends = false;
        }
        found[total++] = (Run){number, number + 1};
      }
    }
    if (ascends || total - begin < 2) continue;
    sort_runs(found + begin, total - begin);
    int64_t count = 0;
    for (int64_t i = begin; i < total; ++i) count = append(found + begin, count, found[i]);
    total = begin + count;
  }
  until[groups] = total;
  return total;
}
