/* The host's clocks under --virtual-clock: they stand still while drywarp emulates, and move on by what the predicted run
   takes meanwhile. So programs that time themselves by the host print what they would print beside the GPU. */
#define _GNU_SOURCE
#include "wire.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t SECOND = 1000000000;
static int64_t stopped_at, inside;
/* What is added to the real clocks: the predicted run's time, less the time spent in calls. */
static _Atomic int64_t offset;

static int wanted(void) {
    static int known = -1;
    if (known < 0)
        known = getenv("DRYWARP_RUN_CLOCK") != NULL;
    return known;
}

static int64_t real(clockid_t which) {
    struct timespec now = {0, 0};
    syscall(SYS_clock_gettime, which, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

void clock_stops(void) {
    if (wanted())
        stopped_at = real(CLOCK_MONOTONIC);
}

void clock_goes_on(int64_t predicted) {
    if (wanted()) {
        inside += real(CLOCK_MONOTONIC) - stopped_at;
        atomic_store(&offset, predicted - inside);
    }
}

static int moved(clockid_t which) {
    return wanted() && which != CLOCK_PROCESS_CPUTIME_ID && which != CLOCK_THREAD_CPUTIME_ID;
}

API int clock_gettime(clockid_t which, struct timespec *found) {
    if (!moved(which))
        return (int)syscall(SYS_clock_gettime, which, found);
    int64_t now = real(which) + atomic_load(&offset);
    found->tv_sec = now / SECOND, found->tv_nsec = now % SECOND;
    return 0;
}

API int gettimeofday(struct timeval *restrict found, void *restrict zone) {
    (void)zone;
    int64_t now = real(CLOCK_REALTIME) + (wanted() ? atomic_load(&offset) : 0);
    if (found)
        found->tv_sec = now / SECOND, found->tv_usec = now % SECOND / 1000;
    return 0;
}
