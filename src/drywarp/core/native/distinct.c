// Numbers for distinct words, in the order of their first appearance.
#include "core.h"

// For each of `count` words the number of the distinct word that it equals, and for each distinct word where it appears first.
// `table` has a power of two of places, more than there are words, all 0. Returns how many are distinct.
EXPORT int64_t drywarp_number_distinct(const int64_t *words, int64_t count, int64_t *table, int64_t places, int64_t *first,
                                       int64_t *number) {
  int64_t distinct = 0, latest = -1;
  for (int64_t i = 0; i < count; ++i) {
    // Equal words often follow each other.
    if (latest >= 0 && words[first[latest]] == words[i]) {
      number[i] = latest;
      continue;
    }
    uint64_t mixed = (uint64_t)words[i] * UINT64_C(0x9E3779B97F4A7C15);
    int64_t place = (int64_t)(mixed ^ mixed >> 32) & (places - 1);
    while (table[place] && words[first[table[place] - 1]] != words[i]) place = (place + 1) & (places - 1);
    if (!table[place]) {
      first[distinct] = i;
      table[place] = ++distinct;
    }
    number[i] = latest = table[place] - 1;
  }
  return distinct;
}
