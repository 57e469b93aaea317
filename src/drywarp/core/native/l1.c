// A fully associative cache of sectored lines that replaces a random one: the L1 of one SM (memory/stream.py).
#include "core.h"

// Where a resident line stands among all that are, -1 if it is not, and its valid sectors.
typedef struct {
  int64_t place, valid;
} Line;

// The sectors of each access that hit, a bit each, in the order of the accesses.
//
// `line` are dense numbers below `line_count`, `wanted` the requested sectors of the line (a bit each), `allocate` whether a
// miss fills them. `capacity`, at least 1, is in lines. `lines` is room for `line_count` lines, `resident` for the numbers of those that
// fit. Returns how many hit.
EXPORT int64_t drywarp_sector_hits(
    const int64_t *line, const int64_t *wanted, const uint8_t *allocate, int64_t accesses, int64_t line_count,
    int64_t capacity, Line *lines, int64_t *resident, int64_t *hits) {
  for (int64_t n = 0; n < line_count; ++n) lines[n] = (Line){-1, 0};
  uint64_t random = 0x9E3779B97F4A7C15u;  // the same victims for the same accesses
  int64_t used = 0, sum = 0;
  for (int64_t i = 0; i < accesses; ++i) {
    Line *at = lines + line[i];
    hits[i] = at->valid & wanted[i];
    sum += __builtin_popcountll((uint64_t)hits[i]);
    if (!allocate[i]) continue;
    if (at->place < 0) {
      int64_t place = used;
      if (used == capacity) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        place = (int64_t)((random >> 32) * (uint64_t)capacity >> 32);
        lines[resident[place]] = (Line){-1, 0};
      } else {
        ++used;
      }
      at->place = place;
      resident[place] = line[i];
    }
    at->valid |= wanted[i];
  }
  return sum;
}
