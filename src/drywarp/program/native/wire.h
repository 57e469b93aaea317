/* How a program's calls reach drywarp: one request and one reply each, over a local socket (README.md). */
#ifndef DRYWARP_WIRE_H
#define DRYWARP_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum { NAME_BYTES = 48, MOST_NUMBERS = 12, MOST_VALUES = 8 };

struct request {
    char name[NAME_BYTES];
    int64_t number[MOST_NUMBERS];
    uint64_t bytes; /* that follow */
};

struct reply {
    int64_t status; /* an error code of the runtime's */
    int64_t value[MOST_VALUES];
    uint64_t bytes; /* that follow */
};

/* What a reply brought: its values, and its bytes up to the room that the caller had for them. */
struct answer {
    int status;
    int64_t value[MOST_VALUES];
    size_t bytes;
};

enum { ERROR_INVALID = 1, ERROR_INITIALIZATION = 3, ERROR_NO_DEVICE = 100, ERROR_UNSUPPORTED = 801, ERROR_UNKNOWN = 999 };

/* Ask drywarp. `data` may be NULL; `out` takes at most `room` bytes. A program that drywarp does not run gets
   ERROR_NO_DEVICE, a forked child ERROR_INITIALIZATION, as from a real driver. */
struct answer ask_with(const char *name, const int64_t *numbers, const void *data, size_t bytes, void *out, size_t room);

#define ASK(name, ...) ask_with(name, (const int64_t[MOST_NUMBERS]){__VA_ARGS__}, NULL, 0, NULL, 0)
#define N(x) ((int64_t)(intptr_t)(x))

/* Replaces the functions that a program linked in by a call of ours of the same name (redirect.c). */
void redirect_static_runtime(void);

/* Tell drywarp of a call that it cannot serve; returns the error for it. */
int unsupported(const char *name);

#define API __attribute__((visibility("default")))

#endif
