// Numbers for distinct words, in the order of their first appearance.
#include <string.h>

#include "core.h"

// The table's places in use at first: it grows with the distinct words, so that few of them stay in the nearest cache.
#define FEWEST_PLACES 1024

// The place of a word: that of the first equal one, else a free one.
static int64_t place_of(uint64_t word, const int64_t *words, const int64_t *first, const int64_t *table, int64_t places) {
  uint64_t mixed = word * UINT64_C(0x9E3779B97F4A7C15);
  int64_t place = (int64_t)(mixed ^ mixed >> 32) & (places - 1);
  while (table[place] && (uint64_t)words[first[table[place] - 1]] != word) place = (place + 1) & (places - 1);
  return place;
}

// For each of `count` words the number of the distinct word that it equals, and for each distinct word where it appears first.
// `table` has a power of two of places, more than there are words, all 0. Returns how many are distinct.
EXPORT int64_t drywarp_number_distinct(const int64_t *words, int64_t count, int64_t *table, int64_t places, int64_t *first,
                                       int64_t *number) {
  int64_t distinct = 0, latest = -1;
  int64_t used = places < FEWEST_PLACES ? places : FEWEST_PLACES;
  for (int64_t i = 0; i < count; ++i) {
    // Equal words often follow each other.
    if (latest >= 0 && words[first[latest]] == words[i]) {
      number[i] = latest;
      continue;
    }
    int64_t place = place_of((uint64_t)words[i], words, first, table, used);
    if (!table[place]) {
      first[distinct] = i;
      table[place] = ++distinct;
      latest = distinct - 1;
      if (2 * distinct > used && used < places) {
        used = used > places / 4 ? places : 4 * used;
        memset(table, 0, (size_t)used * sizeof *table);
        for (int64_t d = 0; d < distinct; ++d)
          table[place_of((uint64_t)words[first[d]], words, first, table, used)] = d + 1;
      }
    } else {
      latest = table[place] - 1;
    }
    number[i] = latest;
  }
  return distinct;
}
