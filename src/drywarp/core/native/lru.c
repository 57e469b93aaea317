// A fully associative cache of sectored lines with least-recently-used replacement: the L1 of one SM (memory/stream.py).
#include "core.h"

// Where a line stands in the list from the most recent (after the sentinel) to the least (before it).
typedef struct {
  int64_t before, after, valid, resident;
} Line;

static inline void unlink_line(Line *lines, int64_t n) {
  lines[lines[n].before].after = lines[n].after;
  lines[lines[n].after].before = lines[n].before;
}

// The sectors of each access that hit, a bit each, in the order of the accesses.
//
// `line` are dense numbers below `line_count`, `wanted` the requested sectors of the line (a bit each), `allocate` whether a
// miss fills them. `capacity` is in lines. `lines` is room for `line_count` + 1 lines. Returns how many hit.
EXPORT int64_t drywarp_sector_hits(
    const int64_t *line, const int64_t *wanted, const uint8_t *allocate, int64_t accesses, int64_t line_count,
    int64_t capacity, Line *lines, int64_t *hits) {
  const int64_t head = line_count;
  for (int64_t n = 0; n <= line_count; ++n) lines[n] = (Line){-1, -1, 0, 0};
  lines[head].before = lines[head].after = head;
  int64_t used = 0, sum = 0;
  for (int64_t i = 0; i < accesses; ++i) {
    const int64_t n = line[i];
    hits[i] = 0;
    if (lines[n].resident) {
      hits[i] = lines[n].valid & wanted[i];
      unlink_line(lines, n);
    } else if (!allocate[i]) {
      continue;
    } else {
      if (used == capacity) {
        const int64_t last = lines[head].before;
        unlink_line(lines, last);
        lines[last].resident = lines[last].valid = 0;
        --used;
      }
      lines[n].resident = 1;
      ++used;
    }
    if (allocate[i]) lines[n].valid |= wanted[i];
    const int64_t first = lines[head].after;
    lines[n].before = head;
    lines[n].after = first;
    lines[head].after = lines[first].before = n;
    sum += __builtin_popcountll((uint64_t)hits[i]);
  }
  return sum;
}
