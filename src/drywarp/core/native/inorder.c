// The event loop for warps that issue in program order (pipeline/engine_inorder.py).
//
// For each warp it stores the tick at which the next instruction is ready within its warp. Other limits (its subsystem, its
// partition's valve) are checked when a partition looks for its next issue, which is then remembered. Its tick is always a
// lower bound, because every event only delays it, except for warps that start or return from a barrier: these lower it at
// once. `stale` marks what must be found anew before use.
#include "pipeline.h"

// The place of the next instruction and one past the last, its node, the place in the unrolled program, and the tick `after`
// until which the next instruction must wait, for `reason`. `written` is what has been dropped from the notes on a subsystem.
typedef struct {
  Warp base;
  int64_t place, end, node, reason, position, after, written;
} InOrderWarp;

// The warps of a partition that wait to issue. A warp's place in the order that the policy prefers is its bit. Those that are
// ready when the valve opens are in `ready`, by subsystem in `users`. There are `count` others in `due`: tick and place in one
// number, the soonest last. `places` are those of warps; by partition and place, `at_place` is the warp, and `needs` the
// subsystem that it waits for.
enum { PLACE_BITS = 6, MOST_BITS = 1 << PLACE_BITS };
typedef struct {
  uint64_t ready;
  int64_t count;
} Waiting;

// Names and order are those of `pipeline.engine_inorder.IN_ORDER`.
typedef struct {
  Machine m;
  int64_t warp_count, operand_count, depth, phase_count, watch_levels, hash_count;
  const int64_t *waits;
  const Position *positions;
  const LoopEnd *loops;
  const int64_t *nest, *path_from, *events, *events_from, *needed;
  InOrderWarp *warps;
  int64_t *ready, *resource, *counters, *slot_ready, *slot_reason;
  PhaseState *phase_states;
  Phase *phases;
  Watch *watch;
  int64_t *seen, *words;
  Waiting *waiting;
  uint64_t *users;
  int64_t *due, *places, *at_place, *needs;
} InOrder;

static inline void make_ready(InOrder *s, int64_t q, int64_t place) {
  const uint64_t bit = (uint64_t)1 << place;
  s->waiting[q].ready |= bit;
  s->users[q * s->m.resource_count + s->needs[q * MOST_BITS + place]] |= bit;
}

// Those that are ready by `tick`, before which the valve does not open.
static inline void make_ready_by(InOrder *s, int64_t q, int64_t tick) {
  Waiting *waiting = &s->waiting[q];
  const int64_t *due = s->due + q * MOST_BITS;
  while (waiting->count > 0 && due[waiting->count - 1] >> PLACE_BITS <= tick)
    make_ready(s, q, due[--waiting->count] & (MOST_BITS - 1));
}

// Note that a warp waits to issue.
static inline void wait_to_issue(InOrder *s, int64_t q, int64_t w, int64_t tick, int64_t own) {
  if (s->m.width > MOST_BITS) return;
  const int64_t place = s->places[w];
  s->needs[q * MOST_BITS + place] = own;
  if (tick <= s->m.parts[q].valve) {
    make_ready(s, q, place);
    return;
  }
  const int64_t key = tick << PLACE_BITS | place;
  int64_t *due = s->due + q * MOST_BITS, n = s->waiting[q].count++;
  for (; n > 0 && due[n - 1] < key; --n) due[n] = due[n - 1];
  due[n] = key;
}

// A warp issues at `tick`.
static inline void wait_no_more(InOrder *s, int64_t q, int64_t w, int64_t tick, int64_t own) {
  if (s->m.width > MOST_BITS) return;
  make_ready_by(s, q, tick);
  const uint64_t bit = (uint64_t)1 << s->places[w];
  s->waiting[q].ready &= ~bit;
  s->users[q * s->m.resource_count + own] &= ~bit;
}

// Note all warps that wait, for a run that begins or goes on, or when warps have changed places.
static void note_waiting(InOrder *s) {
  const Machine *m = &s->m;
  if (m->width > MOST_BITS) return;
  memset(s->users, 0, (size_t)(m->partitions * m->resource_count) * sizeof(uint64_t));
  for (int64_t q = 0; q < m->partitions; ++q) s->waiting[q] = (Waiting){0};
  int64_t *next = s->needs;  // of each partition, while places are given
  for (int64_t q = 0; q < m->partitions; ++q) next[q] = 0;
  for (int64_t k = 0; k < s->warp_count; ++k) {
    const int64_t w = m->order == 0 ? k : m->at_rank[k], q = part_of(m, w), place = next[q]++;
    s->places[w] = place;
    s->at_place[q * MOST_BITS + place] = w;
  }
  for (int64_t w = 0; w < s->warp_count; ++w) {
    const int64_t at = m->homes[w].at;
    if (s->ready[at] < NEVER) wait_to_issue(s, part_of(m, w), w, s->ready[at], s->resource[at]);
  }
}

// Make the warp's next instruction a candidate: not before `after`, nor before its operands are ready, of which constants may
// miss their cache once the others are there.
static void arm(InOrder *s, int64_t w) {
  Machine *m = &s->m;
  InOrderWarp *warp = &s->warps[w];
  int64_t tick = warp->after, reason = warp->reason;
  const int64_t number = s->positions[warp->place].node;
  const Node *node = &m->nodes[number];
  const int64_t *ready = s->slot_ready + w * s->operand_count, *why = s->slot_reason + w * s->operand_count;
  for (int64_t k = node->wait_from; k < node->wait_to; ++k) {
    const int64_t operand = s->waits[k];
    const bool later = ready[operand] > tick;
    tick = later ? ready[operand] : tick;
    reason = later ? why[operand] : reason;
  }
  if (m->accounting) {
    int64_t counted = most(warp->base.counted, warp->after);
    stall(m, number, WAIT, counted - warp->base.counted);
    stall(m, number, reason, most(0, tick - counted));
    counted = most(counted, tick);
    stall(m, number, CONSTANT_MISS, most(0, tick + node->miss - counted));
    warp->base.counted = most(counted, tick + node->miss);
  }
  tick += node->miss;
  reason = node->miss ? CONSTANT_MISS : reason;
  const int64_t q = part_of(m, w), at = m->homes[w].at, own = node->resource + (node->per_partition ? q : 0);
  warp->node = number;
  warp->reason = reason;
  s->ready[at] = tick;
  s->resource[at] = own;
  wait_to_issue(s, q, w, tick, own);
  Partition *part = &m->parts[q];
  may_issue(part, most(tick, part->valve));
  if (own != part->needs) part->others = least(part->others, most(tick, part->valve));
}

// The partition's earliest tick, and the warp that issues then: of those that are ready before the valve opens only the
// subsystems are looked at, and of the others those that are ready before the best so far.
static int64_t look_at_bits(InOrder *s, int64_t q, int64_t *warp) {
  Machine *m = &s->m;
  const int64_t floor = m->parts[q].valve, *needs = s->needs + q * MOST_BITS, *due = s->due + q * MOST_BITS;
  make_ready_by(s, q, floor);
  int64_t tick = NEVER, others = NEVER, k = s->waiting[q].count - 1;
  uint64_t chosen = 0;
  for (uint64_t rows = s->waiting[q].ready; rows;) {
    const int64_t own = needs[__builtin_ctzll(rows)], at = most(m->free[own], floor);
    const uint64_t its = s->users[q * m->resource_count + own];
    rows &= ~its;
    chosen = at < tick ? its : at == tick ? chosen | its : chosen;
    others = least(others, most(tick, at));
    tick = least(tick, at);
  }
  for (; k >= 0 && due[k] >> PLACE_BITS <= tick; --k) {
    const int64_t place = due[k] & (MOST_BITS - 1), at = most(due[k] >> PLACE_BITS, m->free[needs[place]]);
    const uint64_t bit = (uint64_t)1 << place;
    chosen = at < tick ? bit : at == tick ? chosen | bit : chosen;
    others = least(others, most(tick, at));
    tick = least(tick, at);
  }
  m->parts[q].others = k >= 0 ? least(others, due[k] >> PLACE_BITS) : others;
  if (tick == NEVER) {
    *warp = -1;
    return tick;
  }
  if (m->order == 0 && m->parts[q].last >= 0) {
    const uint64_t after = chosen & ~(uint64_t)1 << s->places[m->parts[q].last];
    chosen = after ? after : chosen;
  }
  *warp = s->at_place[q * MOST_BITS + __builtin_ctzll(chosen)];
  return tick;
}

// The same for more warps than bits. Tick and priority form one number, so that the search is a minimum without branches.
static int64_t look_at_all(const InOrder *s, int64_t q, int64_t *warp) {
  const Machine *m = &s->m;
  const int64_t floor = m->parts[q].valve, last = m->parts[q].last, width = m->width;
  const int64_t *ready = s->ready + q * width, *resource = s->resource + q * width, *free = m->free;
  int64_t best = NEVER << PRIORITY_BITS, w;
  if (m->order == 0) {
    const int64_t start = last >= 0 ? row_of(m, last) + 1 : 0;
    for (int64_t j = 0; j < width; ++j) {
      int64_t tick = most(most(ready[j], free[resource[j]]), floor), distance = j - start;
      distance = distance < 0 ? distance + width : distance;
      best = least(best, (tick << PRIORITY_BITS) | distance);
    }
    w = start + (best & ((1 << PRIORITY_BITS) - 1));
    w = (w >= width ? w - width : w) * m->partitions + q;
  } else {
    const int64_t *rank = m->rank + q * width;
    for (int64_t j = 0; j < width; ++j) {
      int64_t tick = most(most(ready[j], free[resource[j]]), floor);
      best = least(best, (tick << PRIORITY_BITS) | rank[j]);
    }
    w = m->at_rank[best & ((1 << PRIORITY_BITS) - 1)];
  }
  const int64_t tick = best >> PRIORITY_BITS;
  *warp = tick < NEVER ? w : -1;
  return tick;
}

// Find the partition's next issue: the earliest tick, and among the warps ready then, the policy's choice.
static void look(InOrder *s, int64_t q) {
  Machine *m = &s->m;
  Partition *part = &m->parts[q];
  part->stale = 0;
  int64_t favoured = NEVER;
  if (part->greedy >= 0) {
    const int64_t at = m->homes[part->greedy].at;
    favoured = most(most(s->ready[at], m->free[s->resource[at]]), part->valve);
    if (favoured == part->valve) {  // no issue before the valve opens: nothing is earlier
      part->next = favoured;
      part->candidate = part->greedy;
      part->needs = s->resource[at];
      part->others = favoured;
      return;
    }
  }
  int64_t w;
  part->next = m->width <= MOST_BITS ? look_at_bits(s, q, &w) : look_at_all(s, q, &w);
  if (m->width > MOST_BITS) part->others = part->next;
  part->candidate = favoured == part->next && favoured < NEVER ? part->greedy : w;
  if (part->candidate >= 0) part->needs = s->resource[m->homes[part->candidate].at];
}

// Before the notes on a subsystem are reset: save what its waiting instructions need of them.
static void write_down(InOrder *s, int64_t own, int64_t tick) {
  const Machine *m = &s->m;
  for (int64_t w = 0; w < s->warp_count; ++w) {
    int64_t at = m->homes[w].at, counted = s->warps[w].base.counted;
    if (s->ready[at] < NEVER && s->resource[at] == own && m->spells[own * m->spell_room].start <= counted &&
        counted < tick)
      s->warps[w].written = busy_before(m, own, counted);
  }
}

// Start a block of a type in slot `b`: all signals of its phases are missing.
static void begin_phases(InOrder *s, int64_t b, int64_t type) {
  for (int64_t i = 0; i < s->m.per_block; ++i) {
    int64_t path = s->m.block_paths[type * s->m.per_block + i];
    s->phase_states[b * s->m.per_block + i] = (PhaseState){s->events_from[path], -1};
  }
  for (int64_t k = 0; k < s->phase_count; ++k)
    s->phases[b * s->phase_count + k] = (Phase){s->needed[type * s->phase_count + k], 0};
}

// Signal the node's phases and start to await one; whether some warp that awaits a phase may resume.
static bool signal_phases(InOrder *s, int64_t w, int64_t b, const Node *node, int64_t tick, int64_t completion) {
  int64_t at = tick;
  if (node->sync & SYNC_AT_END) {
    at = completion;
    if (node->after_slot >= 0) at = most(at, s->slot_ready[w * s->operand_count + node->after_slot]);
  }
  PhaseState *state = &s->phase_states[w];
  Phase *phases = s->phases + b * s->phase_count;
  int64_t event = state->event, signals = s->events[event];
  bool opened = false;
  for (int64_t k = event + 1; k < event + 1 + signals; ++k) {
    Phase *phase = &phases[s->events[k]];
    phase->missing -= 1;
    phase->complete_at = most(phase->complete_at, at);
    opened |= phase->missing == 0;
  }
  event += 1 + signals;
  if (node->sync & SYNC_AWAITS) {
    state->at_phase = s->events[event++];
    opened |= state->at_phase >= 0;
  }
  state->event = event;
  return opened;
}

// Resume at `tick` a warp that waits at node `waiting`; the time until then has the reason `code`.
//
// With `following`, it is charged to the next instruction if there is one, else to this one.
static void resume(InOrder *s, int64_t w, int64_t tick, int64_t code, bool following) {
  Machine *m = &s->m;
  InOrderWarp *warp = &s->warps[w];
  int64_t node = warp->base.waiting, operand = m->nodes[node].sets;
  warp->base.waiting = -1;
  if (operand >= 0 && tick > s->slot_ready[w * s->operand_count + operand]) {
    s->slot_ready[w * s->operand_count + operand] = tick;
    s->slot_reason[w * s->operand_count + operand] = code;
  }
  warp->base.done = most(warp->base.done, tick);
  if (m->issue_room) m->table[warp->base.record].completion = tick;
  if (m->accounting) {
    int64_t counted = warp->base.counted;
    if (warp->place < warp->end) {
      int64_t its = s->positions[warp->place].node;
      counted = most(counted, warp->after);
      stall(m, its, WAIT, counted - warp->base.counted);
      if (following) node = its;
    }
    stall(m, node, code, most(0, tick - counted));
    warp->base.counted = most(tick, counted);
  }
  if (tick >= warp->after) {
    warp->after = tick;
    warp->reason = code;
  }
}

// Observation: the state in words that do not depend on the tick (pipeline/observe.py).

// Account for all that is known of the time until now, and for the rest of a subsystem's busy period.
//
// The next issue or the barrier would account for it later; afterwards it no longer matters when the wait began.
static void settle(InOrder *s) {
  Machine *m = &s->m;
  const int64_t now = m->clock->now;
  for (int64_t w = 0; w < s->warp_count; ++w) {
    if (m->slots[m->homes[w].slot].sequence < 0) continue;
    InOrderWarp *warp = &s->warps[w];
    int64_t counted = warp->base.counted, at = m->homes[w].at;
    if (s->ready[at] < NEVER) {
      int64_t own = s->resource[at], until = most(now, m->free[own]), node = warp->node;
      if (counted >= until) continue;
      if (m->free[own] > counted) {
        int64_t throttled = busy_since(m, own, counted, warp->written);
        stall(m, node, m->nodes[node].busy_reason, throttled);
        counted += throttled;
      }
      stall(m, node, NOT_SELECTED, until - counted);
      warp->base.counted = until;
    } else if (warp->base.waiting >= 0 && counted < now) {
      int64_t node = warp->base.waiting;
      if (warp->place < warp->end) {
        node = s->positions[warp->place].node;
        int64_t waits = least(now, most(counted, warp->after));
        stall(m, node, WAIT, waits - counted);
        counted = waits;
      }
      stall(m, node, AT_BARRIER, now - counted);
      warp->base.counted = now;
    }
  }
}

// Write the words of all warps; returns where they end.
static int64_t describe_warps(const InOrder *s) {
  const Machine *m = &s->m;
  const int64_t now = m->clock->now;
  int64_t *words = s->words, n = 0;
  for (int64_t w = 0; w < s->warp_count; ++w) {
    if (m->slots[m->homes[w].slot].sequence < 0) continue;
    const InOrderWarp *warp = &s->warps[w];
    const int64_t q = part_of(m, w), at = m->homes[w].at;
    const bool armed = s->ready[at] < NEVER;
    if (!armed && warp->base.waiting < 0) {  // it has ended
      words[n++] = -1;
      continue;
    }
    words[n++] = warp->place;
    words[n++] = most(0, warp->base.done - now);
    if (armed) {  // being ready before the subsystem and the valve changes nothing
      words[n++] = most(most(now, s->ready[at]), most(m->free[s->resource[at]], m->parts[q].valve)) - now;
      words[n++] = -1;
    } else {
      words[n++] = most(0, warp->after - now);
      words[n++] = warp->base.waiting;
    }
    if (m->accounting) {
      words[n++] = most(0, warp->base.counted - now);
      words[n++] = warp->base.counted > now ? warp->base.before : -1;
    }
    for (int64_t k = 0; k < s->operand_count; ++k) {
      int64_t ahead = s->slot_ready[w * s->operand_count + k] - now;
      if (ahead <= 0)
        words[n++] = 0;
      else
        words[n++] = m->accounting ? (ahead << 4) + s->slot_reason[w * s->operand_count + k] : ahead;
    }
  }
  return n;
}

// Write the state that belongs to no single warp from `words[n]` on; returns where the words end.
static int64_t describe_machine(const InOrder *s, int64_t n) {
  const Machine *m = &s->m;
  const int64_t now = m->clock->now;
  const bool rotates = m->order == 0;
  int64_t *words = s->words;
  for (int64_t b = 0; b < m->slot_count; ++b) {
    const Slot *slot = &m->slots[b];
    words[n++] = slot->sequence >= 0 ? slot->alive : -1;
    words[n++] = slot->room < NEVER ? most(0, slot->room - now) : -1;
    if (slot->sequence < 0) continue;
    int64_t older = 0;
    if (!rotates)
      for (int64_t other = 0; other < m->slot_count; ++other)
        older += 0 <= m->slots[other].sequence && m->slots[other].sequence < slot->sequence;
    words[n++] = older;
    words[n++] = slot->sequence < m->clock->full;
    words[n++] = slot->arrived;
    words[n++] = slot->arrived > 0 ? most(0, slot->last_arrival - now) : 0;
    words[n++] = most(0, slot->ends - now);
  }
  words[n++] = m->clock->full_left > 0 ? -1 : most(0, m->clock->full_end - now);
  if (m->launch_interval) words[n++] = most(0, m->clock->not_sooner - now);
  int64_t soonest = NEVER;
  for (int64_t q = 0; q < m->partitions; ++q) {
    const Partition *part = &m->parts[q];
    const int64_t opens = most(now, part->valve);
    soonest = least(soonest, opens);
    words[n++] = most(0, part->valve - now);
    words[n++] = rotates ? part->last : -1;
    words[n++] = m->greedy ? part->greedy : -1;
    int64_t before = 0;  // partitions that a shared subsystem served longer ago: only the order of the ticks matters
    for (int64_t other = 0; other < m->partitions; ++other) before += m->parts[other].served < part->served;
    words[n++] = before;
    if (part->even_free + part->odd_free > 0) {  // else no operand was ever read there; none before the valve opens
      words[n++] = most(0, part->even_free - opens);
      words[n++] = most(0, part->odd_free - opens);
    }
  }
  // No subsystem is used before some valve opens; only the accounting looks at it earlier.
  if (m->accounting) soonest = now;
  for (int64_t r = 0; r < m->resource_count; ++r) words[n++] = most(0, m->free[r] - soonest);
  for (int64_t r = 0; r < m->resource_count; ++r) {
    const int64_t first = n;
    for (int64_t k = m->pending_from[r]; k < m->pending_from[r + 1]; ++k) {  // their order is irrelevant: sort them
      int64_t value = most(0, m->pending[k] - now), at = n++;
      for (; at > first && words[at - 1] > value; --at) words[at] = words[at - 1];
      words[at] = value;
    }
  }
  return n;
}

// Store the hash of the first `count` words; whether the loop should return, and why.
static int64_t noticed(const InOrder *s, int64_t level, int64_t count) {
  Clock *clock = s->m.clock;
  Watch *watch = &s->watch[level];
  uint64_t key = (uint64_t)count;
  for (int64_t k = 0; k < count; ++k) {
    key = (key ^ (uint64_t)s->words[k]) * UINT64_C(0x9E3779B97F4A7C15);
    key ^= key >> 29;
  }
  const int64_t found = (int64_t)(key >> 1) | 1, number = watch->count_seen++;
  watch->not_before = clock->issued + count / watch->sparing;
  int64_t *entry = s->seen + (level * s->hash_count + found % s->hash_count) * 2;
  const bool met = entry[0] == found;
  const int64_t ago = number - entry[1];
  entry[0] = found;
  entry[1] = number;
  clock->level = level;
  if (watch->awaited != 0) {
    if (found == watch->awaited) return NOTICED;
    if (--watch->patience <= 0) watch->awaited = 0;
  } else if (met && clock->issued >= watch->mute) {
    watch->awaited = found;
    watch->ago = ago;
    return NOTICED;
  }
  return clock->issued >= clock->limit ? STOPPED : DONE_ALL;
}

// Describe the state and store it; whether the loop should return, and why.
//
// Iterations of loops that are watched at `level` or further out are excluded from what is stored.
static int64_t observe(InOrder *s, int64_t level) {
  Machine *m = &s->m;
  if (m->accounting) settle(s);
  int64_t n = describe_machine(s, describe_warps(s));
  m->clock->words = n;
  for (int64_t w = 0; w < s->warp_count; ++w) {
    const InOrderWarp *warp = &s->warps[w];
    if (m->slots[m->homes[w].slot].sequence < 0 || warp->place == warp->end) continue;
    for (int64_t depth = 0; depth < s->depth; ++depth) {
      int64_t own = s->nest[warp->place * s->depth + depth];
      if (own == 0 || own > level) s->words[n++] = s->counters[w * s->depth + depth];
    }
  }
  return noticed(s, level, n);
}

// The loop.

static void launch(InOrder *s, int64_t b, int64_t tick) {
  Machine *m = &s->m;
  const int64_t block = m->clock->next_block, type = next_type(m);
  for (int64_t i = 0; i < m->per_block; ++i) {
    int64_t w = b * m->per_block + i, path = m->block_paths[type * m->per_block + i];
    InOrderWarp *warp = &s->warps[w];
    warp->base = (Warp){.done = tick, .block = block, .waiting = -1, .record = warp->base.record, .before = -1,
                        .counted = tick};
    warp->place = s->path_from[path];
    warp->end = s->path_from[path + 1];
    warp->position = 0;
    warp->after = tick;
    warp->reason = SELECTED;
    m->age[w] = block * m->per_block + i;
    memset(s->slot_ready + w * s->operand_count, 0, (size_t)s->operand_count * sizeof(int64_t));
    m->todo[i] = w;
  }
  begin_phases(s, b, type);
  start_block(m, b, tick);
  if (m->order != 0) note_waiting(s);  // they rank anew
}

// Note when the instruction that a warp issued is complete.
static inline void complete(InOrder *s, int64_t w, const Node *node, int64_t tick, int64_t completion) {
  if (node->sets >= 0) {
    const int64_t at = w * s->operand_count + node->sets;
    const bool later = completion > s->slot_ready[at];
    s->slot_ready[at] = later ? completion : s->slot_ready[at];
    s->slot_reason[at] = later ? node->dependent_reason : s->slot_reason[at];
  }
  s->warps[w].base.done = most(most(s->warps[w].base.done, completion), tick);
}

// What a warp does once its instruction has issued; returns how many warps of its block are in `todo`.
static int64_t after_issue(InOrder *s, int64_t w, int64_t b, const Node *node, int64_t tick, int64_t completion) {
  Machine *m = &s->m;
  InOrderWarp *warp = &s->warps[w];
  if (node->barrier) {
    m->slots[b].arrived += 1;
    m->slots[b].last_arrival = tick;
    warp->base.done = most(warp->base.done, tick);
    warp->base.waiting = node - m->nodes;
    return 0;
  }
  complete(s, w, node, tick, completion);
  m->todo[0] = w;
  int64_t left = 1;
  if (!node->sync) return left;
  bool opened = signal_phases(s, w, b, node, tick, completion);
  if (s->phase_states[w].at_phase >= 0) {  // it resumes with the others that await a phase, or when that phase is complete
    warp->base.waiting = node - m->nodes;
    left = 0;
  }
  for (int64_t i = 0; opened && i < m->per_block; ++i) {
    int64_t v = b * m->per_block + i, phase = s->phase_states[v].at_phase;
    if (phase < 0 || s->phases[b * s->phase_count + phase].missing != 0) continue;
    s->phase_states[v].at_phase = -1;
    const Node *at = &m->nodes[s->warps[v].base.waiting];
    int64_t goes_on = most(s->phases[b * s->phase_count + phase].complete_at, tick) + at->latency;
    resume(s, v, goes_on, at->await_reason, false);
    m->todo[left++] = v;
  }
  return left;
}

// The warps in `todo`, of slot `b`, go on or end; the end of one may open a barrier for others.
static void go_on(InOrder *s, int64_t b, int64_t left) {
  Machine *m = &s->m;
  Slot *slot = &m->slots[b];
  for (;;) {
    while (left > 0) {
      int64_t w = m->todo[--left];
      if (s->warps[w].place < s->warps[w].end)
        arm(s, w);
      else
        end_warp(m, &s->warps[w].base, w, b);
    }
    if (slot->arrived == 0 || slot->arrived < slot->alive) break;
    // All have arrived or ended: the barrier opens.
    int64_t opens = most(slot->last_arrival, slot->ends);
    slot->arrived = 0;
    for (int64_t i = 0; i < m->per_block; ++i) {
      int64_t w = b * m->per_block + i, node = s->warps[w].base.waiting;
      if (node < 0 || s->phase_states[w].at_phase >= 0) continue;
      // Time at the barrier is charged to the next instruction; if there is none, to the barrier itself.
      resume(s, w, opens + m->nodes[node].latency, AT_BARRIER, true);
      m->todo[left++] = w;
    }
  }
  end_block(m, b);
}

// The partition that issues at `tick`, of those in `due`, the one that a shared subsystem served longest ago first; -1 if none
// does after all. Those behind it are not looked at: they may have to wait for the same subsystem anyway.
static inline __attribute__((always_inline)) int64_t choose(
    InOrder *s, const int64_t partitions, int64_t tick, uint64_t due) {
  Machine *m = &s->m;
  while (due) {
    int64_t first = __builtin_ctzll(due);
    if (due & (due - 1)) {
      // When it was served and its number form one number, so that there are no branches; those that are not due come last.
      int64_t soonest = INT64_MAX;
      for (int64_t q = 0; q < partitions; ++q) {
        const int64_t served = m->parts[q].served + (int64_t)(~due >> q & 1) * NEVER;
        soonest = least(soonest, served * MOST_BITS + q);
      }
      first = soonest & (MOST_BITS - 1);
    }
    if (m->parts[first].stale) look(s, first);
    if (m->parts[first].next == tick) return first;
    due &= ~((uint64_t)1 << first);
  }
  return -1;
}

// Issue the next instruction of partition `q`; returns the warp. `completion` becomes when it completes.
static inline __attribute__((always_inline)) int64_t issue(
    InOrder *s, const int64_t partitions, int64_t q, int64_t tick, int64_t issued, int64_t *completion) {
  Machine *m = &s->m;
  const int64_t w = m->parts[q].candidate, at = m->homes[w].at, own = s->resource[at];
  InOrderWarp *warp = &s->warps[w];
  const Node *node = &m->nodes[warp->node];
  int64_t reason = warp->reason, bound = s->ready[at];
  if (m->free[own] > bound) {
    bound = m->free[own];
    reason = node->busy_reason;
  }
  if (tick > bound) reason = NOT_SELECTED;
  if (m->accounting) {
    count_issue(m, &warp->base, warp->node, own, tick, warp->base.counted, warp->written);
    if (tick > m->free[own]) {
      if (m->newest[own] == m->spell_room - 1) write_down(s, own, tick);
      note_spell(m, own, tick);
    }
  }
  *completion = occupy(m, node, own, q, tick);
  // Other partitions look again if their next issue needs a resource that was taken: when it is free, or another is needed.
  if (!node->per_partition || node->level_from != node->level_to) {
    for (int64_t other = 0; other < partitions; ++other) {
      Partition *part = &m->parts[other];
      const int64_t taken = (part->candidate >= 0) & m->changed[part->needs];
      const int64_t later = most(part->next, least(part->others, m->free[part->needs]));
      part->stale |= taken;
      part->next = taken ? later : part->next;
    }
  }
  forget_changes(m, node, own, q);
  issued_in(m, &m->parts[q], node, w, tick, read_registers(m, node, q, tick));
  m->parts[q].others = m->parts[q].next;
  s->ready[at] = NEVER;
  wait_no_more(s, q, w, tick, own);
  if (m->issue_room)
    m->table[issued] = (Issue){w, warp->base.block, warp->node, warp->position, tick, *completion, reason};
  warp->base.record = issued;
  warp->position += 1;
  if (node->sets_read >= 0) {
    int64_t operand = w * s->operand_count + node->sets_read;
    if (tick + node->read_ticks > s->slot_ready[operand]) {
      s->slot_ready[operand] = tick + node->read_ticks;
      s->slot_reason[operand] = node->dependent_reason;
    }
  }
  return w;
}

// Advance a warp to its next place; returns the level of the loop whose next iteration begins there, if it is watched, else 0.
static int64_t advance(InOrder *s, int64_t w) {
  InOrderWarp *warp = &s->warps[w];
  int64_t *counters = s->counters + w * s->depth, level = 0, place = warp->place, loop = s->positions[place].closes;
  ++place;
  while (loop >= 0) {
    const LoopEnd *end = &s->loops[loop];
    if (++counters[end->depth] < end->count) {
      place = end->start;
      level = end->level;
      break;
    }
    counters[end->depth] = 0;
    loop = end->outer;
  }
  warp->place = place;
  return level;
}

// Write the words that describe the state, without loop counters; returns how many there are.
EXPORT int64_t drywarp_describe(const InOrder *s) { return describe_machine(s, describe_warps(s)); }

// The loop, compiled for each usual number of partitions.
static inline __attribute__((always_inline)) int64_t run(InOrder *s, const int64_t partitions) {
  Machine *m = &s->m;
  Clock *clock = m->clock;
  const bool watching = s->watch_levels > 0;
  note_waiting(s);
  int64_t issued = clock->issued;
  // The leader's iterations and launches in the leading slot are observed, as long as they keep occurring.
  int64_t leader = clock->leader, turns = 0, leading = clock->leading, launches = 0, look_at = -1;
  for (;;) {
    uint64_t due;
    int64_t tick = m->issue_room && issued >= clock->limit ? -1 - STOPPED : next_event(m, partitions, &due);
    if (tick < 0) {
      clock->issued = issued;
      return -1 - tick;
    }
    int64_t b, left = 0;
    if (tick == clock->next_room) {
      b = take_room(m);
      if (clock->next_block < clock->total) {
        launch(s, b, tick);
        left = m->per_block;
        ++launches;
        if (watching && (b == leading || launches > 4 * m->slot_count)) {
          leading = b;
          launches = look_at = 0;
        }
      }
    } else {
      int64_t q = choose(s, partitions, tick, due), completion;
      if (q < 0) continue;  // the bounds were too low: look again
      int64_t w = issue(s, partitions, q, tick, issued++, &completion);
      InOrderWarp *warp = &s->warps[w];
      b = m->homes[w].slot;
      int64_t level = advance(s, w);
      if (watching && level > 0) {
        ++turns;
        if (w == leader || turns > 4 * s->warp_count) {
          leader = w;
          turns = 0;
          look_at = level;
        }
      }
      const Node *node = &m->nodes[warp->node];
      warp->after = tick + node->stall;
      warp->reason = WAIT;
      if (!(node->barrier | node->sync) && warp->place < warp->end) {  // nothing that concerns its block
        complete(s, w, node, tick, completion);
        arm(s, w);
        if (look_at < 0) continue;
      } else {
        left = after_issue(s, w, b, node, tick, completion);
      }
    }
    go_on(s, b, left);
    if (look_at < 0) continue;
    if (issued >= s->watch[look_at].not_before) {
      clock->issued = issued;
      clock->now = tick;
      clock->leader = leader;
      clock->leading = leading;
      int64_t code = observe(s, look_at);
      if (code != DONE_ALL) return code;
    }
    look_at = -1;
  }
}

// Resume at the state in the clock; returns why it stopped. Without rows `watch`, nothing is watched for.
EXPORT int64_t drywarp_run_in_order(InOrder *s) {
  return s->m.partitions == 4 ? run(s, 4) : s->m.partitions == 1 ? run(s, 1) : run(s, s->m.partitions);
}
