// The state of a simulated SM, and the steps that the in-order and the dataflow loop share. Every field is 64 bits wide: the
// structs are rows of the integer tables that Python makes (pipeline/columns.py), and ticks are 1/240 cycle.
#ifndef DRYWARP_PIPELINE_H
#define DRYWARP_PIPELINE_H

#include "core.h"

// A tick that is never reached; shifted by PRIORITY_BITS it still fits into 64 bits.
#define NEVER ((int64_t)1 << 50)
#define PRIORITY_BITS 12

// Why a loop returned: all is done, there is no room to record another block, something was observed, or the limit.
enum { DONE_ALL, NO_ROWS, NOTICED, STOPPED };

// Reasons that the loops assign themselves, by their place in `pipeline.reasons.REASONS`.
enum { SELECTED = 0, NOT_SELECTED = 1, WAIT = 5, AT_BARRIER = 8, DRAIN = 9, CONSTANT_MISS = 13 };

// What a node does to the phases of its block's barriers: bits of `Node.sync`.
enum { SYNC_SIGNALS = 1, SYNC_AT_END = 2, SYNC_AWAITS = 4 };

// A node's costs; `resource` is that of partition 0, the others follow if `per_partition` is set.
typedef struct {
  int64_t resource, lambda, latency, stall, wait_from, wait_to, sets, sets_read;
  int64_t read_ticks, barrier, async, level_from, level_to, per_partition, dependent_reason, busy_reason;
  int64_t sync, after_slot, await_reason;
  int64_t reads_even, reads_odd, read_window, stays, issue_ticks, rival, more_even, more_odd, miss;
} Node;

typedef struct {
  int64_t resource, lambda, tail, per_partition, queues;
} Level;

// A place of a path's program: its node, and the loop end that it closes (-1: none).
typedef struct {
  int64_t node, closes;
} Position;

typedef struct {
  int64_t start, count, depth, outer, level;
} LoopEnd;

typedef struct {
  int64_t missing, complete_at;
} Phase;

typedef struct {
  int64_t event, at_phase;
} PhaseState;

typedef struct {
  int64_t alive, arrived, last_arrival, ends, room, sequence;
} Slot;

typedef struct {
  int64_t next, candidate, stale, valve, last, greedy, picked, served, even_free, odd_free, needs, others;
} Partition;

typedef struct {
  int64_t start, before;
} Spell;

typedef struct {
  int64_t launched, slot;
} Block;

// An issue, as an execution profile records it.
typedef struct {
  int64_t warp, block, node, position, issue, completion, reason;
} Issue;

typedef struct {
  int64_t issued, next_block, skipped, total, full, full_left, full_end, next_room, now, level, words, limit;
  int64_t leader, leading, not_sooner;
} Clock;

typedef struct {
  int64_t count_seen, awaited, patience, not_before, mute, ago, sparing;
} Watch;

// What both kinds of warps have: when all that it issued is complete, its block, the barrier or node at which it waits (-1:
// none), its last issue's row, the node that issued last (-1: none), and the tick up to which its time is accounted for.
typedef struct {
  int64_t done, block, waiting, record, before, counted;
} Warp;

// Where a warp slot lies: its partition, its row there, its place in arrays by partition and row, and its block slot. They
// are looked up, since divisions would take longer than all else.
typedef struct {
  int64_t part, row, at, slot;
} Home;

// One SM, apart from its warps. Names and order are those of `pipeline.state.MACHINE`.
typedef struct {
  int64_t partitions, launch_ticks, launch_interval, per_block, greedy, order, cycle;
  int64_t slot_count, resource_count, type_count, width, spell_room, issue_room, accounting, reason_count, block_room;
  const Node *nodes;
  const Level *levels;
  const int64_t *block_paths, *block_types;
  const Home *homes;
  int64_t *rank, *at_rank, *age, *todo;
  Slot *slots;
  Partition *parts;
  int64_t *free, *busy, *changed, *pending, *pending_from;
  int64_t *warp_ends;
  Block *blocks;
  int64_t *stalls;
  Spell *spells;
  int64_t *newest;
  Issue *table;
  Clock *clock;
} Machine;

// Partition of a warp slot, and the warp's place within it.
static inline int64_t part_of(const Machine *m, int64_t w) { return m->homes[w].part; }
static inline int64_t row_of(const Machine *m, int64_t w) { return m->homes[w].row; }

static inline void stall(const Machine *m, int64_t node, int64_t reason, int64_t ticks) {
  m->stalls[node * m->reason_count + reason] += ticks;
}

// Blocks (blocks.c).
int64_t take_room(Machine *m);
void start_block(Machine *m, int64_t b, int64_t start);
void end_block(Machine *m, int64_t b);

// The next block's type.
static inline int64_t next_type(const Machine *m) {
  return m->block_types[(m->clock->next_block + m->clock->skipped) % m->type_count];
}

// Warp `w` of slot `b` has issued everything: it ends when its results are ready.
static inline void end_warp(Machine *m, const Warp *warp, int64_t w, int64_t b) {
  if (m->accounting && warp->before >= 0) {
    int64_t over = warp->done - warp->counted;
    stall(m, warp->before, DRAIN, most(0, over));
    stall(m, warp->before, SELECTED, least(0, over));
  }
  m->warp_ends[m->age[w]] = warp->done;
  m->slots[b].alive -= 1;
  m->slots[b].ends = most(m->slots[b].ends, warp->done);
}

// Stall accounting (stalls.c): how a warp's time is divided is defined in pipeline/reasons.py.
int64_t busy_before(const Machine *m, int64_t resource, int64_t tick);
int64_t busy_since(const Machine *m, int64_t resource, int64_t tick, int64_t written);
void note_spell(Machine *m, int64_t resource, int64_t tick);
void count_issue(
    Machine *m, Warp *warp, int64_t node, int64_t own, int64_t tick, int64_t counted, int64_t written);

// Send a transaction through its levels; returns when the last one starts on it.
//
// It reaches the next level when the previous one starts on it: constant times between them are part of Λ, so that the
// returned tick less `tick` is the queueing delay.
static inline int64_t visit_levels(Machine *m, const Node *node, int64_t q, int64_t tick, bool tail) {
  for (int64_t k = node->level_from; k < node->level_to; ++k) {
    const Level *level = &m->levels[k];
    int64_t resource = level->resource + (level->per_partition ? q : 0);
    int64_t cost = tail ? level->tail : level->lambda, start = most(tick, m->free[resource]);
    m->free[resource] = start + cost;
    if (level->queues) tick = start;
    m->busy[resource] += cost;
    m->changed[resource] = 1;
  }
  return tick;
}

// Record an issue on a subsystem that limits outstanding instructions; returns when it accepts the next.
//
// The earliest of the recorded completions is replaced: the next finds room once the then earliest has completed.
static inline int64_t admit(Machine *m, int64_t resource, int64_t free_at, int64_t completion) {
  int64_t first = m->pending_from[resource], end = m->pending_from[resource + 1], earliest = first;
  for (int64_t k = first + 1; k < end; ++k)
    if (m->pending[k] < m->pending[earliest]) earliest = k;
  m->pending[earliest] = completion;
  for (int64_t k = first; k < end; ++k)
    if (m->pending[k] < m->pending[earliest]) earliest = k;
  return most(free_at, m->pending[earliest]);
}

// Occupy the instruction's subsystem and levels; returns when it completes. `changed` marks what was taken.
static inline int64_t occupy(Machine *m, const Node *node, int64_t own, int64_t q, int64_t tick) {
  bool tail = m->clock->full_left == 0 && tick >= m->clock->full_end;
  int64_t start = visit_levels(m, node, q, tick, tail), completion;
  if (!node->async)
    completion = start + node->latency;
  else if (node->level_from == node->level_to)
    completion = tick + node->lambda;
  else
    completion = start;
  m->free[own] = tick + node->lambda;
  m->busy[own] += node->lambda;
  if (m->pending_from[own] != m->pending_from[own + 1]) m->free[own] = admit(m, own, m->free[own], completion);
  m->changed[own] = 1;
  return completion;
}

static inline void forget_changes(Machine *m, const Node *node, int64_t own, int64_t q) {
  m->changed[own] = 0;
  for (int64_t k = node->level_from; k < node->level_to; ++k)
    m->changed[m->levels[k].resource + (m->levels[k].per_partition ? q : 0)] = 0;
}

// Occupy the register file's banks; returns how long the instruction is delayed before it reads its operands.
//
// It waits until both banks have time for it within its window, or are free if it takes longer. While the rival is busy,
// which takes a share of both banks for itself, its reads take longer.
static inline int64_t read_registers(Machine *m, const Node *node, int64_t q, int64_t tick) {
  Partition *part = &m->parts[q];
  const int64_t beside = node->rival >= 0 && m->free[node->rival + q] > tick;
  const int64_t even = node->reads_even + beside * node->more_even, odd = node->reads_odd + beside * node->more_odd;
  int64_t start = tick;
  if (even > 0) start = most(start, part->even_free + even - most(node->read_window, even));
  if (odd > 0) start = most(start, part->odd_free + odd - most(node->read_window, odd));
  if (even > 0) part->even_free = most(start, part->even_free) + even;
  if (odd > 0) part->odd_free = most(start, part->odd_free) + odd;
  return start - tick;
}

// Warp `w` issued in the partition: the valve closes, and the next issue must be found anew.
static inline void issued_in(const Machine *m, Partition *part, const Node *node, int64_t w, int64_t tick, int64_t held) {
  if (!node->per_partition) part->served = tick;
  part->valve = tick + node->issue_ticks + held;
  part->last = w;
  part->greedy = m->greedy && node->stays ? w : -1;
  part->next = part->valve;
  part->stale = 1;
}

// A lower bound on the next issue of a partition: at most this tick.
static inline void may_issue(Partition *part, int64_t tick) {
  if (tick <= part->next) {
    part->next = tick;
    part->stale = 1;
  }
}

// The tick of the next event, or a code less than zero: -1 - why the loop returns. `due` has a bit for each partition that
// issues then. Neither has branches, because which they are cannot be foreseen; `partitions` is a constant where it can be.
static inline __attribute__((always_inline)) int64_t next_event(
    const Machine *m, const int64_t partitions, uint64_t *due) {
  int64_t tick = m->parts[0].next;
  uint64_t at = 0;
  for (int64_t q = 1; q < partitions; ++q) tick = least(tick, m->parts[q].next);
  for (int64_t q = 0; q < partitions; ++q) at |= (uint64_t)(m->parts[q].next == tick) << q;
  *due = tick < NEVER ? at : 0;
  if (m->clock->next_room > tick) return tick;
  if (m->clock->next_room == NEVER) return -1 - DONE_ALL;
  if (m->clock->next_block == m->block_room && m->clock->next_block < m->clock->total) return -1 - NO_ROWS;
  return m->clock->next_room;
}

#endif
