// How long a subsystem accepted nothing while an instruction could have issued (pipeline/reasons.py).
//
// Other warps may have found it free in between. So each subsystem's busy periods are noted, contiguous ones merged, with the
// sum of the earlier ones. The last one, `newest`, ends when the subsystem is next free. The notes are bounded: when they are
// full, what each waiting instruction needs of them is written down, and they are reset.
#include "pipeline.h"

// Ticks before `tick` in which the subsystem was busy; `tick` is not before the first noted period.
int64_t busy_before(const Machine *m, int64_t resource, int64_t tick) {
  const Spell *spells = m->spells + resource * m->spell_room;
  int64_t low = 0, high = m->newest[resource];
  while (low < high) {
    int64_t middle = (low + high + 1) / 2;
    if (spells[middle].start <= tick)
      low = middle;
    else
      high = middle - 1;
  }
  int64_t begins = spells[low].start, before = spells[low].before;
  int64_t lasts = low == m->newest[resource] ? m->free[resource] - begins : spells[low + 1].before - before;
  return before + least(tick - begins, lasts);
}

// Ticks from `tick` until now in which the subsystem was busy; it became free after `tick`.
//
// `written` is `busy_before` of `tick` if the notes no longer reach back that far.
int64_t busy_since(const Machine *m, int64_t resource, int64_t tick, int64_t written) {
  const Spell *spells = m->spells + resource * m->spell_room;
  const Spell *last = &spells[m->newest[resource]];
  int64_t ticks = m->free[resource] - most(tick, last->start);
  if (tick < last->start)
    ticks += last->before - (tick < spells[0].start ? written : busy_before(m, resource, tick));
  return ticks;
}

// Note that a busy period begins at `tick`, after an idle time; full notes are reset.
void note_spell(Machine *m, int64_t resource, int64_t tick) {
  Spell *spells = m->spells + resource * m->spell_room;
  int64_t last = m->newest[resource];
  int64_t before = spells[last].before + m->free[resource] - spells[last].start;
  last = last + 1 < m->spell_room ? last + 1 : 0;
  spells[last] = (Spell){tick, before};
  m->newest[resource] = last;
}

// Account for the time from `counted`, when the instruction could issue within its warp, to its issue.
void count_issue(
    Machine *m, Warp *warp, int64_t node, int64_t own, int64_t tick, int64_t counted, int64_t written) {
  if (tick < warp->counted) {  // sooner than a cycle after the last
    stall(m, warp->before, SELECTED, tick - warp->counted);
  } else if (tick > counted) {
    if (m->free[own] > counted) {
      int64_t throttled = busy_since(m, own, counted, written);
      stall(m, node, m->nodes[node].busy_reason, throttled);
      counted += throttled;
    }
    stall(m, node, NOT_SELECTED, tick - counted);
  }
  warp->before = node;
  warp->counted = tick + m->cycle;
  stall(m, node, SELECTED, m->cycle);
}
