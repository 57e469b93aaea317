// Positions of groups of lanes: forming a batch, diverging, waiting and reconverging. The same rules as in the emulator's
// `groups` and `scheduler`, on the same arrays.
#include "emulator.h"

static inline int64_t places_of(const Run *run) { return run->state->slots * run->state->warps; }

#define EACH_PLACE(w, place) for (int64_t place = (w); place < places_of(run); place += run->state->warps)

// Make a batch of each warp's first group that is at a PC.
static void form(Run *run, int64_t pc) {
  State *at = run->state;
  int64_t members = 0, total = 0;
  for (int64_t w = 0; w < at->warps; ++w) {
    run->active[w] = 0;
    EACH_PLACE(w, place) {
      if (run->group_state[place] != RUNS || run->group_pc[place] != pc) continue;
      run->active[w] = run->group_mask[place];
      run->batch[members] = w;
      run->group_slots[members] = place / at->warps;
      ++members;
      total += count(run->active[w]);
      break;
    }
  }
  at->members = members;
  at->total = total;
  refresh(run);
}

// Form the next batch: CHOSEN, or why there is none. The lowest PC goes first, occasionally the oldest group.
int64_t choose(Run *run) {
  State *at = run->state;
  int64_t pc = FAR, oldest = FAR, oldest_pc = FAR;
  bool left_over = false;
  for (int64_t place = 0; place < places_of(run); ++place) {
    if (run->group_state[place] == RUNS) {
      pc = least(pc, run->group_pc[place]);
      if (run->group_stamp[place] < oldest) {
        oldest = run->group_stamp[place];
        oldest_pc = run->group_pc[place];
      }
    }
    left_over |= run->group_state[place] != EMPTY;
  }
  if (pc == FAR) return left_over ? STUCK : DONE;
  const bool turn = at->step - at->turned >= ROTATE_EVERY;
  if (!turn || oldest_pc != pc) {
    const Entry *entry = entered(run, pc);
    if (!entry) {
      at->pc = pc;
      return NEEDS_DECODING;
    }
    if (entry->block_spins && oldest_pc != pc) at->waited = 1;
    if (turn || entry->block_spins) pc = oldest_pc;
  }
  if (turn) at->turned = at->step;
  at->pc = pc;
  form(run, pc);
  return CHOSEN;
}

// Update the positions of the groups outside the batch.
void refresh(Run *run) {
  State *at = run->state;
  int64_t next_other = FAR, member = 0;
  bool waits = false;
  for (int64_t w = 0; w < at->warps; ++w) {
    int64_t taken = -1;
    if (member < at->members && run->batch[member] == w) taken = run->group_slots[member++] * at->warps + w;
    EACH_PLACE(w, place) {
      if (run->group_state[place] > RUNS)
        waits = true;
      else if (run->group_state[place] == RUNS && place != taken)
        next_other = least(next_other, run->group_pc[place]);
    }
  }
  at->next_other = next_other;
  at->others_wait = waits;
}

// Put a group into a place; a group without lanes empties it.
static void settle(Run *run, int64_t place, int64_t pc, Lanes lanes, int state, int64_t argument) {
  run->group_pc[place] = pc;
  run->group_mask[place] = lanes;
  run->group_state[place] = (int8_t)(lanes ? state : EMPTY);
  run->group_argument[place] = argument;
}

// Put a running group into the first empty slot of a warp; there must be one.
static void add_group(Run *run, int64_t w, int64_t pc, Lanes lanes) {
  EACH_PLACE(w, place) {
    if (run->group_state[place] != EMPTY) continue;
    run->group_stamp[place] = 0;
    settle(run, place, pc, lanes, RUNS, 0);
    return;
  }
}

// Whether every warp of the batch has an empty slot.
bool enough_slots(const Run *run) {
  for (int64_t member = 0; member < run->state->members; ++member) {
    bool found = false;
    EACH_PLACE(run->batch[member], place) found |= run->group_state[place] == EMPTY;
    if (!found) return false;
  }
  return true;
}

static int64_t place_of(const Run *run, int64_t member) {
  return run->group_slots[member] * run->state->warps + run->batch[member];
}

// Send the `taken` lanes of a member of the batch to `target`, its others to `fall`.
void part(Run *run, int64_t member, Lanes taken, int64_t target, int64_t fall) {
  const int64_t w = run->batch[member], place = place_of(run, member);
  const Lanes rest = run->active[w] & ~taken;
  run->group_stamp[place] = run->state->step;
  settle(run, place, rest ? fall : target, rest ? rest : taken, RUNS, 0);
  if (rest && taken) add_group(run, w, target, taken);
}

// Let lanes of a member of the batch exit; its others continue at `fall`.
void drop(Run *run, int64_t member, Lanes gone, int64_t fall) {
  const int64_t w = run->batch[member], place = place_of(run, member);
  run->group_stamp[place] = run->state->step;
  settle(run, place, fall, run->active[w] & ~gone, RUNS, 0);
  run->live[w] &= ~gone;
  for (int64_t number = 0; number < BARRIER_REGISTERS; ++number) run->barriers[number * run->state->warps + w] &= ~gone;
}

// Let lanes of a member of the batch wait, to resume at `pc`; its others continue there at once.
void park(Run *run, int64_t member, Lanes lanes, int64_t pc, int state, int64_t argument) {
  const int64_t w = run->batch[member], place = place_of(run, member);
  const Lanes rest = run->active[w] & ~lanes;
  settle(run, place, pc, lanes, state, argument);
  run->group_stamp[place] = run->state->step;
  if (rest) add_group(run, w, pc, rest);
}

// Whether a group waits at a convergence barrier of this number, with lanes among `within`.
static bool waits_to_converge(const Run *run, int64_t place, int64_t number, Lanes within) {
  return run->group_state[place] == AT_CONVERGENCE && run->group_argument[place] == number &&
         (run->group_mask[place] & within);
}

static void release_convergence(Run *run, int64_t w, int64_t number) {
  const int64_t warps = run->state->warps;
  uint32_t *barrier = run->barriers + number * warps + w;
  const Lanes inside = *barrier;
  Lanes waiting = 0;
  // A group whose lanes are not in the barrier waits for an outer use of it.
  EACH_PLACE(w, place) if (waits_to_converge(run, place, number, inside)) waiting |= run->group_mask[place];
  if (!waiting || (inside & run->live[w] & ~run->yielded[w] & ~waiting)) return;
  *barrier &= ~(waiting | run->yielded[w]);
  // Resume them; those with the same PC become one group.
  EACH_PLACE(w, place) {
    if (!waits_to_converge(run, place, number, inside)) continue;
    for (int64_t other = place + warps; other < places_of(run); other += warps) {
      if (!waits_to_converge(run, other, number, inside) || run->group_pc[other] != run->group_pc[place]) continue;
      run->group_mask[place] |= run->group_mask[other];
      run->group_mask[other] = 0;
      run->group_state[other] = EMPTY;
    }
    run->group_state[place] = RUNS;
  }
}

// Whether two groups wait at the same synchronisation of the same lanes.
static bool wait_alike(const Run *run, int64_t other, int64_t place) {
  return run->group_state[other] == AT_WARPSYNC && run->group_argument[other] == run->group_argument[place] &&
         run->group_pc[other] == run->group_pc[place];
}

static void release_warpsync(Run *run, int64_t w) {
  EACH_PLACE(w, place) {
    if (run->group_state[place] != AT_WARPSYNC) continue;
    Lanes waiting = 0;
    EACH_PLACE(w, other) if (wait_alike(run, other, place)) waiting |= run->group_mask[other];
    if ((Lanes)run->group_argument[place] & run->live[w] & ~waiting) continue;
    for (int64_t other = place + run->state->warps; other < places_of(run); other += run->state->warps) {
      if (!wait_alike(run, other, place)) continue;
      run->group_mask[other] = 0;
      run->group_state[other] = EMPTY;
    }
    run->group_mask[place] = waiting;
    run->group_state[place] = RUNS;
  }
}

// Resume the groups in the batch's warps that no longer need to wait.
void release(Run *run) {
  for (int64_t member = 0; member < run->state->members; ++member) {
    const int64_t w = run->batch[member];
    uint32_t numbers = 0;
    bool synchronises = false;
    EACH_PLACE(w, place) {
      if (run->group_state[place] == AT_CONVERGENCE) numbers |= 1u << (run->group_argument[place] & 31);
      synchronises |= run->group_state[place] == AT_WARPSYNC;
    }
    for (int64_t number = 0; number < BARRIER_REGISTERS; ++number)
      if (numbers >> number & 1) release_convergence(run, w, number);
    if (synchronises) release_warpsync(run, w);
  }
}

// Whether the batch holds every live lane of every block of which it has warps.
bool whole_blocks(const Run *run) {
  const int64_t per_block = run->state->per_block;
  for (int64_t first = 0; first < run->state->warps; first += per_block) {
    Lanes present = 0, missing = 0;
    for (int64_t w = first; w < first + per_block; ++w) {
      present |= run->active[w];
      missing |= run->live[w] & ~run->active[w];
    }
    if (present && missing) return false;
  }
  return true;
}

static bool waits_at(const Run *run, int64_t place, int64_t key) {
  return run->group_state[place] == AT_BARRIER && run->group_argument[place] == key;
}

// Whether everything that a block's barrier waits for has arrived. A key is the barrier's number, and from bit 8 on the
// stated count of threads.
static bool may_pass(const Run *run, int64_t first, int64_t key) {
  const int64_t number = key & 255, threads = key >> 8;
  int64_t arrived = 0;
  bool everyone = true;
  for (int64_t w = first; w < first + run->state->per_block; ++w) {
    const int64_t at = number * run->state->warps + w;
    Lanes waiting = 0;
    EACH_PLACE(w, place) if (waits_at(run, place, key)) waiting |= run->group_mask[place];
    everyone &= !(run->live[w] & ~(waiting | run->arrived[at]));
    arrived += ((waiting | run->arrived[at]) != 0) + ((waiting & run->arrived[at]) != 0) + run->earlier[at];
  }
  // A stated count is met by whole warps: each counts as 32 threads, full or not, as often as it arrives.
  return threads ? arrived * LANES >= threads : everyone;
}

// Record that a block passes a barrier: its warps that have arrived, or all of them if no count is stated.
static void note_block(Run *run, int64_t first, int64_t key) {
  Wide address;
  int64_t rows = run->state->accesses, latest = -1;
  EACH_LANE address.at[l] = (uint64_t)(key & 255) << 2 | PASSES;
  for (int64_t w = first; w < first + run->state->per_block; ++w) {
    bool there = key >> 8 == 0 || run->arrived[(key & 255) * run->state->warps + w];
    EACH_PLACE(w, place) there |= waits_at(run, place, key);
    if (there) latest = note(run, run->state->at, w, address.at, ~0u, EVENT, latest);
  }
  if (run->state->accesses > rows) run->log_base[run->state->accesses - 1] |= LAST_PASSES;
}

// The same for the blocks in the batch, all of whose lanes are there.
void note_passing(Run *run) {
  for (int64_t first = 0; first < run->state->warps; first += run->state->per_block) {
    bool present = false;
    for (int64_t w = first; w < first + run->state->per_block; ++w) present |= run->active[w] != 0;
    if (present) note_block(run, first, 0);
  }
}

static void pass(Run *run, int64_t first, int64_t key) {
  const int64_t number = key & 255;
  if (run->state->watched) note_block(run, first, key);
  for (int64_t w = first; w < first + run->state->per_block; ++w) {
    run->arrived[number * run->state->warps + w] = 0;
    run->earlier[number * run->state->warps + w] = 0;
    run->votes[number * run->state->warps + w] = 0;
    EACH_PLACE(w, place) if (waits_at(run, place, key)) run->group_state[place] = RUNS;
  }
}

// Release the blocks that have fully arrived at a barrier, without reductions, which the caller must rule out.
void release_barriers(Run *run) {
  const int64_t per_block = run->state->per_block;
  for (int64_t first = 0; first < run->state->warps; first += per_block) {
    int64_t closed = -1;
    for (int64_t w = first; w < first + per_block; ++w) {
      EACH_PLACE(w, place) {
        const int64_t key = run->group_argument[place];
        if (run->group_state[place] != AT_BARRIER || key == closed) continue;
        if (may_pass(run, first, key))
          pass(run, first, key);
        else
          closed = key;
      }
    }
  }
}
