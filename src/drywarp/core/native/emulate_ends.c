// How basic blocks end: branches, exits, and the points where lanes and warps wait for each other.
#include "emulator.h"

// Count guards, and put each member's participating lanes, with guard and extra predicate true, into `lane_sets`.
static int64_t act(Run *run, const Instruction *row) {
  int64_t total = 0;
  for (int64_t member = 0; member < run->state->members; ++member) {
    const int64_t w = run->batch[member];
    const Lanes acting = executing(run, row, w) & lanes_of(run, row->in0, w);
    run->lane_sets[member] = acting;
    total += count(acting);
  }
  return total;
}

static int64_t branch(Run *run, const Instruction *row, int64_t fall) {
  if (row->guard == ALWAYS && row->in0 == ALWAYS) return row->imm;
  // Before guards are counted: the branch is run again when there is room.
  if (!enough_slots(run)) return LACKS_ROOM;
  const int64_t total = act(run, row);
  if (row->sub == 0) {
    if (total == 0) return fall;
    if (total == run->state->total) return row->imm;
  }
  for (int64_t member = 0; member < run->state->members; ++member)
    part(run, member, (Lanes)run->lane_sets[member], row->imm, fall);
  return MOVED;
}

static int64_t leave_kernel(Run *run, const Instruction *row, int64_t fall) {
  State *at = run->state;
  if (act(run, row) == 0) return fall;
  for (int64_t member = 0; member < at->members; ++member) drop(run, member, (Lanes)run->lane_sets[member], fall);
  ++at->live_version;
  if (!at->others_wait) return MOVED;
  release(run);
  if (at->reduces) return MUST_RELEASE;
  release_barriers(run);
  return MOVED;
}

static int64_t converge(Run *run, const Instruction *row, int64_t fall) {
  const State *at = run->state;
  uint32_t *barrier = run->barriers + row->imm * at->warps;
  Lanes missing = 0;
  for (int64_t member = 0; member < at->members; ++member) {
    const int64_t w = run->batch[member];
    run->yielded[w] &= ~run->active[w];
    missing |= barrier[w] & run->live[w] & ~run->yielded[w] & ~run->active[w];
  }
  if (!missing && !at->others_wait) {
    for (int64_t member = 0; member < at->members; ++member) {
      const int64_t w = run->batch[member];
      barrier[w] &= ~(run->active[w] | run->yielded[w]);
    }
    return fall;
  }
  for (int64_t member = 0; member < at->members; ++member) {
    const int64_t w = run->batch[member];
    // Lanes that the barrier has already released need not wait.
    park(run, member, run->active[w] & barrier[w] ? run->active[w] : 0, fall, AT_CONVERGENCE, row->imm);
  }
  release(run);
  return MOVED;
}

// The value that all active lanes of a source agree on; false if they do not.
static bool agreed(const Run *run, int64_t w, const uint32_t *words, uint32_t *value) {
  const Lanes lanes = run->active[w];
  *value = words[lowest(lanes)];
  for (int l = 0; l < LANES; ++l)
    if (lanes & BIT[l] && words[l] != *value) return false;
  return true;
}

static int64_t synchronise_warp(Run *run, const Instruction *row, int64_t fall) {
  const State *at = run->state;
  Operand wanted;
  find(run, &row->a, &wanted);
  Lanes missing = 0;
  for (int64_t member = 0; member < at->members; ++member) {
    const int64_t w = run->batch[member];
    uint32_t lanes;
    if (!agreed(run, w, words_for(&wanted, w), &lanes)) return UNUSUAL;
    run->lane_sets[member] = lanes;
    missing |= lanes & run->live[w] & ~run->active[w];
  }
  if (!missing) return fall;
  for (int64_t member = 0; member < at->members; ++member)
    park(run, member, run->active[run->batch[member]], fall, AT_WARPSYNC, run->lane_sets[member]);
  release(run);
  return MOVED;
}

static int64_t block_barrier(Run *run, const Instruction *row, int64_t fall) {
  const State *at = run->state;
  const int64_t key = row->imm | row->imm2 << 8;
  if (at->reduces) return UNUSUAL;
  if (key == 0 && whole_blocks(run)) {
    Lanes arrived = 0;
    for (int64_t w = 0; w < at->warps; ++w) arrived |= run->arrived[w];
    if (!arrived) {
      if (at->watched) note_passing(run);
      return fall;
    }
  }
  for (int64_t member = 0; member < at->members; ++member)
    park(run, member, run->active[run->batch[member]], fall, AT_BARRIER, key);
  release_barriers(run);
  return MOVED;
}

// Leave a convergence barrier, or yield: lanes that others need not wait for.
static int64_t leave(Run *run, const Instruction *row, int64_t fall) {
  const State *at = run->state;
  act(run, row);
  for (int64_t member = 0; member < at->members; ++member) {
    const int64_t w = run->batch[member];
    if (row->op == YIELD) {
      // A warp whose lanes are all here gives way to none of its own.
      if (run->active[w] != run->live[w]) run->yielded[w] |= (Lanes)run->lane_sets[member];
    } else {
      run->barriers[row->imm * at->warps + w] &= ~(Lanes)run->lane_sets[member];
    }
  }
  if (at->others_wait) {
    release(run);
    refresh(run);
  }
  return fall;
}

// The target in a register, if it is the same for all lanes.
static int64_t go_back(Run *run, const Instruction *row) {
  Operand places;
  find(run, &row->a, &places);
  int64_t target = -1;
  for (int64_t member = 0; member < run->state->members; ++member) {
    uint32_t value;
    const int64_t w = run->batch[member];
    if (!agreed(run, w, words_for(&places, w), &value) || (target >= 0 && target != value)) return UNUSUAL;
    target = value;
  }
  return (target & 15) == 0 && target >> 4 < run->state->instructions ? target : UNUSUAL;
}

int64_t run_end(Run *run, const Instruction *row) {
  const int64_t fall = (row - run->code + 1) * 16;
  switch (row->op) {
    case BRANCH: return branch(run, row, fall);
    case EXIT: return leave_kernel(run, row, fall);
    case CONVERGENCE: return converge(run, row, fall);
    case LEAVE_CONVERGENCE:
    case YIELD: return leave(run, row, fall);
    case WARP_SYNC: return synchronise_warp(run, row, fall);
    case BLOCK_BARRIER: return block_barrier(run, row, fall);
    case JUMP: return row->imm;
    case RETURN: return go_back(run, row);
    case UNKNOWN_END: return UNUSUAL;
    default: return fall;
  }
}
