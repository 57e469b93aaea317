// The blocks of an SM: which slot takes the next one, and in which order warps rank (pipeline/blocks.py).
#include "pipeline.h"

// The block slot that first had room, the lowest if several; it is then marked as occupied.
int64_t take_room(Machine *m) {
  int64_t b = 0, room = NEVER;
  for (int64_t other = 1; other < m->slot_count; ++other)
    if (m->slots[other].room < m->slots[b].room) b = other;
  m->slots[b].room = NEVER;
  if (m->clock->next_block < m->clock->total) m->clock->not_sooner = m->clock->next_room + m->launch_interval;
  for (int64_t other = 0; other < m->slot_count; ++other) room = least(room, m->slots[other].room);
  m->clock->next_room = room < NEVER ? most(room, m->clock->not_sooner) : NEVER;
  return b;
}

// Number all concurrent warps by launch, from 0; `at_rank` is the inverse. Slots that are empty may get any numbers.
static void rank_by_launch(Machine *m, bool youngest) {
  const int64_t warps = m->slot_count * m->per_block;
  for (int64_t b = 0; b < m->slot_count; ++b) {
    int64_t older = 0, own = m->slots[b].sequence;
    for (int64_t other = 0; other < m->slot_count; ++other)
      older += m->slots[other].sequence < own || (m->slots[other].sequence == own && other < b);
    for (int64_t i = 0; i < m->per_block; ++i) {
      int64_t w = b * m->per_block + i, number = older * m->per_block + i;
      if (youngest) number = warps - 1 - number;
      m->rank[m->homes[w].at] = number;
      m->at_rank[number] = w;
    }
  }
}

// Start the next block in slot `b`: everything except its warps' own state.
void start_block(Machine *m, int64_t b, int64_t start) {
  const int64_t block = m->clock->next_block;
  Slot *slot = &m->slots[b];
  slot->sequence = block;
  m->blocks[block] = (Block){start, b};
  slot->ends = start;
  slot->alive = m->per_block;
  slot->arrived = 0;
  for (int64_t w = b * m->per_block; w < (b + 1) * m->per_block; ++w) {
    Partition *part = &m->parts[part_of(m, w)];
    if (part->greedy == w) part->greedy = -1;
  }
  if (m->order != 0) rank_by_launch(m, m->order < 0);
  m->clock->next_block = block + 1;
}

// Make room where the last warp of slot `b` has ended.
void end_block(Machine *m, int64_t b) {
  Slot *slot = &m->slots[b];
  if (slot->alive != 0 || slot->sequence < 0) return;
  if (slot->sequence < m->clock->full) {
    m->clock->full_left -= 1;
    m->clock->full_end = most(m->clock->full_end, slot->ends);
  }
  slot->sequence = -1;
  slot->room = slot->ends + m->launch_ticks;
  m->clock->next_room = least(m->clock->next_room, most(slot->room, m->clock->not_sooner));
}

// The type of each of `count` blocks in launch order: each gets the type furthest behind its due count, ties going to the
// first. `shares` of the types add up to 1; `given` is zero at first. Returns 0.
EXPORT int64_t drywarp_deal(const double *shares, double *given, int64_t types, int64_t *order, int64_t count) {
  for (int64_t number = 0; number < count; ++number) {
    int64_t kind = 0;
    double farthest = shares[0] * (double)(number + 1) - given[0];
    for (int64_t other = 1; other < types; ++other) {
      double behind = shares[other] * (double)(number + 1) - given[other];
      if (behind > farthest) {
        kind = other;
        farthest = behind;
      }
    }
    order[number] = kind;
    given[kind] += 1;
  }
  return 0;
}
