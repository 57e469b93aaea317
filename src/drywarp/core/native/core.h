// What the units of the core share. Arrays belong to the caller, are contiguous, and are as large as each function says.
#ifndef DRYWARP_CORE_H
#define DRYWARP_CORE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

// A function that Python calls.
#define EXPORT __attribute__((visibility("default")))

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
