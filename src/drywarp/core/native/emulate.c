// The loop: runs basic blocks of batches of warps until something needs Python.
//
// Reasons: an instruction or block end that it does not support, a block reached for the first time, buffer content that
// has not been generated yet, full tables, limits, deadlocks. The caller handles it and calls again.
#include "emulator.h"

// As in the emulator's `deadlock` and `scheduler`.
enum { PATIENCE = 2048, CHECK_EVERY = 64 };

static void begin_convergence(Run *run, const Instruction *row) {
  uint32_t *barrier = run->barriers + row->imm * run->state->warps;
  for (int64_t member = 0; member < run->state->members; ++member) {
    const int64_t w = run->batch[member];
    const Lanes lanes = executing(run, row, w);
    barrier[w] |= lanes;
    run->yielded[w] &= ~lanes;
  }
}

// Account for the block at PC and record it for every warp; 0, or why it cannot begin.
static int64_t enter(Run *run) {
  State *at = run->state;
  const int64_t members = at->members;
  const Entry *entry = entered(run, at->pc);
  if (!entry) return NEEDS_DECODING;
  // Each warp may pass a barrier at the end.
  const int64_t accesses = members * entry->block_accesses + (at->watched ? at->warps : 0);
  if (at->steps + members > at->step_room || at->accesses + accesses > at->access_room) return NEEDS_ROOM;
  if (at->patterns + accesses > at->pattern_room) return NEEDS_ROOM;
  if (at->lane_steps > at->lane_limit) return OVER_LIMIT;
  if (at->lane_steps >= at->pause_at || at->step >= at->pause_step) return PAUSED;
  if (!entry->block_spins) {
    at->since = at->step;
    at->look_after = PATIENCE;
  } else if (at->step % CHECK_EVERY == 0 && at->step - at->since >= at->look_after && at->looked != at->step) {
    return NEEDS_LOOK;
  }
  at->at = at->pc >> 4;
  const int64_t length = entry->block_end - at->at;
  at->step += 1;
  at->warp_steps += length * members;
  at->lane_steps += length * at->total;
  at->clock += length;
  for (int64_t member = 0; member < members; ++member) {
    const int64_t w = run->batch[member], row = at->steps++;
    run->log_step_block[row] = (int32_t)entry->block_number;
    run->log_step_warp[row] = (int32_t)(at->first_warp + w);
    run->log_step_lanes[row] = (uint8_t)count(run->active[w]);
  }
  return 0;
}

// Whether another group should run first, so the batch was put back: 1 or 0; -1: the next block is not decoded.
static int put_back(Run *run) {
  const State *at = run->state;
  if (at->pc < at->next_other) {
    if (at->next_other >= FAR) return 0;
    if (at->step - at->turned < ROTATE_EVERY) {
      const Entry *entry = entered(run, at->pc);
      if (!entry) return -1;
      if (!entry->block_spins) return 0;
    }
  }
  for (int64_t member = 0; member < at->members; ++member) {
    const int64_t place = run->group_slots[member] * at->warps + run->batch[member];
    run->group_pc[place] = at->pc;
    run->group_stamp[place] = at->step;
  }
  return 1;
}

// Run an instruction inside a block; false if it needs Python.
static bool run_instruction(Run *run, Instruction *row) {
  const int64_t op = row->op;
  if (op == UNKNOWN) return false;
  if (op == NOTHING) return true;
  if (op <= LAST_WORDS)
    run_words(run, row);
  else if (op <= LAST_WIDE)
    run_wide(run, row);
  else if (op <= LAST_FLOAT)
    run_single(run, row);
  else if (op <= LAST_DOUBLE)
    run_double(run, row);
  else if (op <= LAST_TEST)
    run_predicates(run, row);
  else if (op <= LAST_ACCESS)
    return run_access(run, row);
  else
    begin_convergence(run, row);
  return true;
}

// Resume from the state; returns why it stopped.
int64_t advance(Run *run) {
  State *at = run->state;
  int64_t mode = at->mode;
  for (;;) {
    if (mode == NEXT) {
      const int gone = put_back(run);
      if (gone < 0) {
        at->mode = NEXT;
        return NEEDS_DECODING;
      }
      mode = gone ? CHOOSE : ENTER;
    }
    if (mode == CHOOSE) {
      const int64_t chosen = choose(run);
      if (chosen != CHOSEN) {
        at->mode = CHOOSE;
        return chosen;
      }
      mode = ENTER;
    }
    if (mode == ENTER) {
      const int64_t wrong = enter(run);
      if (wrong) {
        at->mode = ENTER;
        return wrong;
      }
    }
    int64_t k = at->at;
    const int64_t end = run->entries[at->pc >> 4].block_end;
    bool done = true;
    while (k < end && run->code[k].op < FIRST_END && (done = run_instruction(run, run->code + k))) ++k;
    at->at = k;
    at->mode = BODY;
    mode = NEXT;
    if (!done) return at->missing >= 0 ? NEEDS_CONTENT : NEEDS_STEP;
    const int64_t after = k < end ? run_end(run, run->code + k) : end * 16;
    if (after >= 0) {
      at->pc = after;
    } else if (after == MOVED) {
      mode = CHOOSE;
    } else if (after == LACKS_ROOM) {
      return NEEDS_SLOTS;
    } else if (after == MUST_RELEASE) {
      at->mode = CHOOSE;
      return NEEDS_RELEASE;
    } else {
      return NEEDS_END;
    }
  }
}

#ifdef BASELINE

int64_t advance_v3(Run *run);
int64_t advance_v4(Run *run);

// The highest level of x86-64 that this processor has and there is code for; 1 elsewhere.
EXPORT int64_t drywarp_level(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2")) return 1;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512cd");
  return wide ? 4 : 3;
#else
  return 1;
#endif
}

// Resume a run with the code for a level, at most that of `drywarp_level`.
EXPORT int64_t drywarp_advance(Run *run, int64_t level) {
#if defined(__x86_64__)
  if (level >= 4) return advance_v4(run);
  if (level >= 3) return advance_v3(run);
#endif
  (void)level;
  return advance(run);
}

#endif
