// A cache of a few lines in sets, each of which replaces by a tree: that of constants (memory/constants.py).
#include "core.h"

// Turn the bits from the root to `way` away from it: half n of a node is its side 1 where the bit is set.
static inline uint64_t turned(uint64_t tree, int64_t way, int64_t ways) {
  for (int64_t node = 1, half = ways >> 1; half > 0; half >>= 1) {
    const int64_t side = (way & half) != 0;
    tree = side ? tree & ~((uint64_t)1 << node) : tree | (uint64_t)1 << node;
    node = 2 * node + side;
  }
  return tree;
}

// The way to which the bits lead from the root.
static inline int64_t victim(uint64_t tree, int64_t ways) {
  int64_t way = 0;
  for (int64_t node = 1, half = ways >> 1; half > 0; half >>= 1) {
    const int64_t side = tree >> node & 1;
    way += side * half;
    node = 2 * node + side;
  }
  return way;
}

// Which accesses miss the second time that a warp makes all of them: returns how many do.
//
// `line` are numbers of lines, one after another in turn in `sets` sets of `ways` ways, a power of two up to 64. `held` is room for
// a number of each way of each set, `trees` for one of each set. An empty way is filled first; else the tree tells.
EXPORT int64_t drywarp_constant_misses(
    const int64_t *line, int64_t accesses, int64_t sets, int64_t ways, int64_t *held, int64_t *trees, uint8_t *missed) {
  for (int64_t n = 0; n < sets * ways; ++n) held[n] = -1;
  for (int64_t n = 0; n < sets; ++n) trees[n] = 0;
  int64_t sum = 0;
  for (int64_t turn = 0; turn < 2; ++turn) {
    for (int64_t i = 0; i < accesses; ++i) {
      const int64_t set = line[i] % sets;
      int64_t *in_set = held + set * ways, way = 0;
      while (way < ways && in_set[way] != line[i] && in_set[way] >= 0) ++way;
      const bool miss = way == ways || in_set[way] != line[i];
      if (way == ways) way = victim((uint64_t)trees[set], ways);
      in_set[way] = line[i];
      trees[set] = (int64_t)turned((uint64_t)trees[set], way, ways);
      missed[i] = miss;
      sum += turn * miss;
    }
  }
  return sum;
}
