// The event loop for warps that may issue any node whose producers have completed (pipeline/engine_dataflow.py).
//
// As in `inorder.c`, a partition's next issue is remembered, as a lower bound. A warp has a list of candidates instead of one
// next instruction: the nodes whose producers have all issued, so that the tick at which they become ready is known.
#include "pipeline.h"

// Where its graph begins, nodes not yet issued, candidates in its list, the tick at which the last issue's stall count ends;
// and for the node `told` that last issued or opened, when each need of its consumers is met (NEVER: not now) and why they
// waited. `earliest` is a lower bound on when a candidate is ready, `only` the subsystem to which all of them issue (-1:
// several).
typedef struct {
  Warp base;
  int64_t first, left, count, gap, told, met[3], why, earliest, only;
} DataflowWarp;

// What a consumer needs of its producer: its result, its operands read, or only that it has issued.
enum { RESULT, READ, ISSUE };

typedef struct {
  int64_t consumer, need;
} Edge;

// Names and order are those of `pipeline.engine_dataflow.DATAFLOW`.
typedef struct {
  Machine m;
  int64_t warp_count, longest;
  const int64_t *graph, *producers, *edge_from, *path_from;
  const Edge *edges;
  DataflowWarp *warps;
  int32_t *missing;
  int8_t *reasons;
  int64_t *ready, *listed, *written;
} Dataflow;

// An entry of a warp's list: the node, and from NODE_BITS on the subsystem to which it issues.
#define NODE_BITS 32
#define NODE_MASK (((int64_t)1 << NODE_BITS) - 1)

// Add a node whose ready tick is known to the warp's candidates.
static void offer(Dataflow *s, int64_t w, int64_t d) {
  Machine *m = &s->m;
  DataflowWarp *warp = &s->warps[w];
  const int64_t q = part_of(m, w), ready = s->ready[w * s->longest + d];
  const Node *node = &m->nodes[s->graph[warp->first + d]];
  const int64_t own = node->resource + (node->per_partition ? q : 0);
  s->listed[w * s->longest + warp->count] = d | (own << NODE_BITS);
  if (warp->count == 0)
    warp->only = own;
  else if (warp->only != own)
    warp->only = -1;
  warp->count += 1;
  warp->earliest = least(warp->earliest, ready);
  may_issue(&m->parts[q], most(most(ready, warp->gap), m->parts[q].valve));
}

// Tell the consumers of the warp's node `told` when their needs of it are met.
static void tell(Dataflow *s, int64_t w) {
  DataflowWarp *warp = &s->warps[w];
  const int64_t at = warp->first + warp->told, row = w * s->longest;
  for (int64_t k = s->edge_from[at]; k < s->edge_from[at + 1]; ++k) {
    int64_t tick = warp->met[s->edges[k].need], consumer = s->edges[k].consumer;
    if (tick == NEVER) continue;
    if (tick > s->ready[row + consumer]) {
      s->ready[row + consumer] = tick;
      s->reasons[row + consumer] = (int8_t)warp->why;
    }
    if (--s->missing[row + consumer] == 0) offer(s, w, consumer);
  }
}

// Find the partition's next issue, not before `now`; `picked` is the place of the node in its warp's list.
//
// Warps are tried in the policy's order, so that ties go to the first, and nothing beats the first that can issue at once.
// Among a warp's nodes, the first in its program is taken.
static void look(Dataflow *s, int64_t q, int64_t now) {
  Machine *m = &s->m;
  Partition *part = &m->parts[q];
  int64_t best = NEVER, best_node = NEVER, place = -1, candidate = -1;
  const int64_t soonest = most(now, part->valve), favourite = part->greedy;
  const bool rotates = m->order == 0;
  const int64_t asked = rotates ? (s->warp_count - q + m->partitions - 1) / m->partitions : s->warp_count;
  const int64_t start = part->last >= 0 ? row_of(m, part->last) + 1 : 0;
  for (int64_t i = -1; i < asked; ++i) {
    int64_t w = favourite;
    if (i >= 0 && rotates)
      w = (start + i >= asked ? start + i - asked : start + i) * m->partitions + q;
    else if (i >= 0)
      w = m->at_rank[i];
    if (w < 0 || part_of(m, w) != q || (i >= 0 && w == favourite)) continue;
    DataflowWarp *warp = &s->warps[w];
    const int64_t floor = most(soonest, warp->gap);
    if (most(warp->earliest, floor) >= best || (warp->only >= 0 && m->free[warp->only] >= best)) continue;
    const int64_t *listed = s->listed + w * s->longest, *ready = s->ready + w * s->longest;
    int64_t earliest = NEVER, only = listed[0] >> NODE_BITS;
    for (int64_t k = 0; k < warp->count; ++k) {
      int64_t d = listed[k] & NODE_MASK, own = listed[k] >> NODE_BITS;
      if (own != only) only = -1;
      earliest = least(earliest, ready[d]);
      int64_t tick = most(most(ready[d], floor), m->free[own]);
      if (tick < best || (tick == best && w == candidate && d < best_node)) {
        best = tick;
        best_node = d;
        place = k;
        candidate = w;
      }
    }
    warp->earliest = earliest;
    warp->only = only;
    if (best == soonest) break;
  }
  part->next = best;
  part->picked = place;
  part->candidate = candidate;
  part->stale = 0;
}

// Before the notes on a subsystem are reset: save what its waiting instructions need of them.
static void write_down(Dataflow *s, int64_t own, int64_t tick) {
  const Machine *m = &s->m;
  for (int64_t w = 0; w < s->warp_count; ++w) {
    const DataflowWarp *warp = &s->warps[w];
    for (int64_t k = 0; k < warp->count; ++k) {
      int64_t entry = s->listed[w * s->longest + k], at = w * s->longest + (entry & NODE_MASK);
      if (entry >> NODE_BITS != own) continue;
      int64_t counted = most(most(warp->base.counted, warp->gap), s->ready[at]);
      if (m->spells[own * m->spell_room].start <= counted && counted < tick)
        s->written[at] = busy_before(m, own, counted);
    }
  }
}

static void launch(Dataflow *s, int64_t b, int64_t tick) {
  Machine *m = &s->m;
  const int64_t block = m->clock->next_block, type = next_type(m);
  start_block(m, b, tick);
  for (int64_t i = 0; i < m->per_block; ++i) {
    int64_t w = b * m->per_block + i, path = m->block_paths[type * m->per_block + i], first = s->path_from[path];
    DataflowWarp *warp = &s->warps[w];
    warp->base = (Warp){.done = tick, .block = block, .waiting = -1, .record = warp->base.record, .before = -1,
                        .counted = tick};
    warp->first = first;
    warp->left = s->path_from[path + 1] - first;
    warp->count = 0;
    warp->gap = tick;
    warp->told = -1;
    warp->earliest = NEVER;
    m->age[w] = block * m->per_block + i;
    for (int64_t d = 0; d < warp->left; ++d) {
      int64_t at = w * s->longest + d;
      s->missing[at] = (int32_t)s->producers[first + d];
      s->ready[at] = tick;
      s->reasons[at] = SELECTED;
      if (s->missing[at] == 0) offer(s, w, d);
    }
    m->todo[i] = w;
  }
}

// The warps in `todo`, of slot `b`, go on or end; the end of one may open a barrier for others.
static void go_on(Dataflow *s, int64_t b, int64_t left) {
  Machine *m = &s->m;
  Slot *slot = &m->slots[b];
  for (;;) {
    while (left > 0) {
      int64_t w = m->todo[--left];
      DataflowWarp *warp = &s->warps[w];
      if (warp->told >= 0) tell(s, w);
      if (warp->left == 0 && warp->base.waiting < 0) end_warp(m, &warp->base, w, b);
    }
    if (slot->arrived == 0 || slot->arrived < slot->alive) break;
    int64_t opens = most(slot->last_arrival, slot->ends);
    slot->arrived = 0;
    for (int64_t i = 0; i < m->per_block; ++i) {
      int64_t w = b * m->per_block + i;
      DataflowWarp *warp = &s->warps[w];
      int64_t d = warp->base.waiting;
      if (d < 0) continue;
      int64_t resume = opens + m->nodes[s->graph[warp->first + d]].latency;
      warp->base.waiting = -1;
      warp->told = d;
      warp->met[ISSUE] = warp->met[READ] = NEVER;
      warp->met[RESULT] = resume;
      warp->why = AT_BARRIER;
      warp->base.done = most(warp->base.done, resume);
      if (m->accounting && warp->left == 0 && resume > warp->base.counted) {
        stall(m, warp->base.before, AT_BARRIER, resume - warp->base.counted);
        warp->base.counted = resume;
      }
      if (m->issue_room) m->table[warp->base.record].completion = resume;
      m->todo[left++] = w;
    }
  }
  end_block(m, b);
}

static int64_t choose(Dataflow *s, int64_t tick) {
  Machine *m = &s->m;
  int64_t chosen = -1;
  for (int64_t q = 0; q < m->partitions; ++q) {
    if (m->parts[q].next != tick) continue;
    if (m->parts[q].stale) {
      look(s, q, tick);
      if (m->parts[q].next != tick) continue;
    }
    if (chosen < 0 || m->parts[q].served < m->parts[chosen].served) chosen = q;
  }
  return chosen;
}

// Account for the time until a node issues: the stall count, a barrier, its operands, then its subsystem.
static void account(Dataflow *s, int64_t w, int64_t d, int64_t own, int64_t tick) {
  Machine *m = &s->m;
  DataflowWarp *warp = &s->warps[w];
  const int64_t number = s->graph[warp->first + d], at = w * s->longest + d;
  int64_t counted = warp->base.counted;
  if (warp->gap > counted) {
    stall(m, number, WAIT, warp->gap - counted);
    counted = warp->gap;
  }
  if (warp->base.before >= 0 && m->nodes[warp->base.before].barrier) {
    stall(m, number, AT_BARRIER, most(0, warp->met[RESULT] - counted));
    counted = most(counted, warp->met[RESULT]);
  }
  if (s->ready[at] > counted) {
    stall(m, number, s->reasons[at], s->ready[at] - counted);
    counted = s->ready[at];
  }
  count_issue(m, &warp->base, number, own, tick, counted, s->written[at]);
  if (tick > m->free[own]) {
    if (m->newest[own] == m->spell_room - 1) write_down(s, own, tick);
    note_spell(m, own, tick);
  }
}

// Issue the node that partition `q` has picked; returns its warp.
static int64_t issue(Dataflow *s, int64_t q, int64_t tick, int64_t issued) {
  Machine *m = &s->m;
  Partition *part = &m->parts[q];
  const int64_t w = part->candidate, entry = s->listed[w * s->longest + part->picked];
  const int64_t d = entry & NODE_MASK, own = entry >> NODE_BITS, at = w * s->longest + d;
  DataflowWarp *warp = &s->warps[w];
  const int64_t number = s->graph[warp->first + d];
  const Node *node = &m->nodes[number];
  int64_t reason = s->reasons[at], bound = s->ready[at];
  if (warp->gap > bound) {
    bound = warp->gap;
    reason = WAIT;
  }
  if (m->free[own] > bound) {
    bound = m->free[own];
    reason = node->busy_reason;
  }
  if (tick > bound) reason = NOT_SELECTED;
  if (m->accounting) account(s, w, d, own, tick);
  const int64_t completion = occupy(m, node, own, q, tick);
  // Other partitions look again if their next issue needs a resource that was taken.
  for (int64_t other = 0; other < m->partitions; ++other) {
    Partition *there = &m->parts[other];
    if (other == q || there->candidate < 0 || there->stale) continue;
    if (m->changed[s->listed[there->candidate * s->longest + there->picked] >> NODE_BITS]) there->stale = 1;
  }
  forget_changes(m, node, own, q);
  issued_in(m, part, node, w, tick, read_registers(m, node, q, tick));
  if (m->issue_room) m->table[issued] = (Issue){w, warp->base.block, number, d, tick, completion, reason};
  warp->base.record = issued;
  // The node leaves the list, and its consumers are told.
  warp->count -= 1;
  s->listed[w * s->longest + part->picked] = s->listed[w * s->longest + warp->count];
  s->missing[at] = -1;
  warp->gap = tick + node->stall;
  warp->left -= 1;
  warp->told = d;
  warp->met[ISSUE] = tick;
  warp->met[READ] = tick + node->read_ticks;
  warp->met[RESULT] = completion;
  warp->why = node->dependent_reason;
  if (node->barrier) {
    Slot *slot = &m->slots[m->homes[w].slot];
    slot->arrived += 1;
    slot->last_arrival = tick;
    warp->base.done = most(warp->base.done, tick);
    warp->base.waiting = d;
    warp->met[RESULT] = NEVER;
  } else {
    warp->base.done = most(most(warp->base.done, completion), tick);
  }
  return w;
}

// Resume at the state in the clock; returns why it stopped.
EXPORT int64_t drywarp_run_dataflow(Dataflow *s) {
  Machine *m = &s->m;
  int64_t issued = m->clock->issued;
  for (;;) {
    uint64_t due;
    int64_t tick = m->issue_room && issued >= m->clock->limit ? -1 - STOPPED : next_event(m, m->partitions, &due);
    if (tick < 0) {
      m->clock->issued = issued;
      return -1 - tick;
    }
    int64_t b, left = 0;
    if (tick == m->clock->next_room) {
      b = take_room(m);
      if (m->clock->next_block < m->clock->total) {
        launch(s, b, tick);
        left = m->per_block;
      }
    } else {
      int64_t q = choose(s, tick);
      if (q < 0) continue;
      int64_t w = issue(s, q, tick, issued++);
      b = m->homes[w].slot;
      m->todo[0] = w;
      left = 1;
    }
    go_on(s, b, left);
  }
}

// The dependence graph of a path, unrolled (pipeline/program.py).

typedef struct {
  int64_t producer, consumer, need;
} Needed;

typedef struct {
  Needed *edges;
  int64_t count, room, *consumers;
} Edges;

static void add_edge(Edges *found, int64_t producer, int64_t consumer, int64_t need) {
  if (found->count < found->room) found->edges[found->count] = (Needed){producer, consumer, need};
  found->consumers[producer] += 1;
  found->count += 1;
}

// Walk the path whose places run from `first` to before `end`; returns the number of edges.
//
// `counters` are zero, `writer` is -1 for each slot. Fills for each unrolled node its `node`, the number of incoming edges
// (`producers`) and of outgoing ones (`consumers`); as far as there is room, also the `edges`, ordered by consumer.
EXPORT int64_t drywarp_unroll(
    int64_t first, int64_t end, const Position *positions, const LoopEnd *loops, const Node *nodes,
    const int64_t *waits, int64_t *counters, int64_t *writer, int64_t *node, int64_t *producers, int64_t *consumers,
    Needed *edges, int64_t room) {
  Edges found = {edges, 0, room, consumers};
  int64_t barrier = -1, position = 0;
  for (int64_t place = first; place < end; ++position) {
    const int64_t number = positions[place].node, before = found.count;
    const Node *this = &nodes[number];
    node[position] = number;
    for (int64_t k = this->wait_from; k < this->wait_to; ++k) {
      int64_t producer = writer[waits[k]];
      if (producer < 0) continue;
      if (nodes[node[producer]].sets == waits[k]) add_edge(&found, producer, position, RESULT);
      if (nodes[node[producer]].sets_read == waits[k]) add_edge(&found, producer, position, READ);
    }
    if (barrier >= 0) add_edge(&found, barrier, position, RESULT);
    if (this->barrier) {
      for (int64_t earlier = barrier + 1; earlier < position; ++earlier) add_edge(&found, earlier, position, ISSUE);
      barrier = position;
    }
    producers[position] = found.count - before;
    if (this->sets >= 0) writer[this->sets] = position;
    if (this->sets_read >= 0) writer[this->sets_read] = position;
    int64_t closes = positions[place++].closes;
    while (closes >= 0) {
      const LoopEnd *loop = &loops[closes];
      if (++counters[loop->depth] < loop->count) {
        place = loop->start;
        break;
      }
      counters[loop->depth] = 0;
      closes = loop->outer;
    }
  }
  return found.count;
}
