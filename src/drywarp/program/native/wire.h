/* How a program's calls reach drywarp: one request and one reply each, over a local socket (README.md). */
#ifndef DRYWARP_WIRE_H
#define DRYWARP_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum { NAME_BYTES = 48, MOST_NUMBERS = 12, MOST_VALUES = 8 };

struct request {
    char name[NAME_BYTES];
    int64_t number[MOST_NUMBERS];
    int64_t device, thread; /* the calling thread, and the device that it has chosen */
    uint64_t bytes; /* that follow */
};

struct reply {
    int64_t status; /* an error code of the runtime's */
    int64_t value[MOST_VALUES];
    int64_t clock; /* of the predicted run, in nanoseconds: what its calls have cost the host */
    uint64_t bytes;   /* that follow */
    uint64_t printed; /* bytes of text after them, which device code printed */
};

/* What a reply brought: its values, and its bytes up to the room that the caller had for them. */
struct answer {
    int status;
    int64_t value[MOST_VALUES];
    size_t bytes;
};

enum { ERROR_INVALID = 1, ERROR_INITIALIZATION = 3, ERROR_NO_DEVICE = 100, ERROR_NO_SUCH_DEVICE = 101, ERROR_UNSUPPORTED = 801, ERROR_UNKNOWN = 999 };

/* Ask drywarp. `data` may be NULL; `out` takes at most `room` bytes. A program that drywarp does not run gets
   ERROR_NO_DEVICE, a forked child ERROR_INITIALIZATION, as from a real driver. */
struct answer ask_with(const char *name, const int64_t *numbers, const void *data, size_t bytes, void *out, size_t room);

#define ASK(name, ...) ask_with(name, (const int64_t[MOST_NUMBERS]){__VA_ARGS__}, NULL, 0, NULL, 0)
#define N(x) ((int64_t)(intptr_t)(x))

/* The device of the calling thread. */
extern __thread int current_device;

/* Device memory: the descriptor of the file that it lies in, and the address of its first byte. */
extern int device_memory;
extern char *device_start;

/* A call to drywarp begins or has ended, by which the host's clocks are moved if the user asks for it (clock.c). */
void clock_stops(void);
void clock_goes_on(int64_t predicted);

/* Replaces the functions that a program linked in by a call of ours of the same name (redirect.c). */
void redirect_static_runtime(void);

/* Tell drywarp of a call that it cannot serve; returns the error for it. */
int unsupported(const char *name);

/* What the runtime and the driver share (runtime.c). */

typedef struct {
    unsigned x, y, z;
} dim3;
typedef void *stream_t;
struct pitched {
    void *pointer;
    size_t pitch, width, height;
};
struct extent {
    size_t width, height, depth;
};

enum { DEVICE = 0, PINNED = 1, MANAGED = 2 };
enum { TO_DEVICE = 1, TO_HOST = 2, ON_DEVICE = 3, WHEREVER = 4 };
static const dim3 ALONE = {1, 1, 1};

struct launch_attribute {
    int id;
    char pad[4];
    union {
        char bytes[64];
        int number;
        dim3 cluster;
    } value;
};

/* A launch whose arguments are given one by one, or `packed` as the kernel reads them. `cooperative` is 1 for such a launch,
   plus 2 for one that may start before the launch before it on its stream has ended (programmatic serialization).
   The runtime's last error stays: the driver's calls do not set it. */
int launch(const void *function, dim3 grid, dim3 block, void **arguments, const void *packed, size_t shared,
           stream_t stream, int cooperative, dim3 cluster);
/* Arguments as the driver takes them in one piece; NULL if there are none. */
const void *packed_in(void **extra);
void read_attributes(const struct launch_attribute *attributes, unsigned count, int *cooperative, dim3 *cluster);
int allocate(void **pointer, size_t bytes, int kind, stream_t stream);
int copy(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind,
         stream_t stream, int async);
/* Move the bytes of a copy with these numbers. */
void move(const int64_t *numbers);

struct array;
struct position {
    size_t x, y, z;
};
struct copy3d {
    const struct array *from_array;
    struct position from_at;
    struct pitched from;
    const struct array *to_array;
    struct position to_at;
    struct pitched to;
    struct extent extent;
    int kind;
};
int copy_volume(const struct copy3d *asked, stream_t stream, int async);

/* Remember an error for cudaGetLastError, and return it. */
int noted(int status);
/* The name (0) or the description (1) of an error. */
const char *text_of(int code, int which);

#define API __attribute__((visibility("default")))
/* Further names of a function, such as those that --default-stream per-thread compiles to. */
#define ALSO(other, name) API extern __typeof__(name) other __attribute__((alias(#name)))

#endif
