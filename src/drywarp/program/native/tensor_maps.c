/* Tensor maps that a program makes itself, and how it finds the driver's functions through the runtime.

   CUDA's encoding is not documented, so a map has ours, which the emulator reads (execution/emulator/tensor_maps.py):
   to a program these are 128 bytes that it passes on. What the driver refuses is refused here. */
#include "wire.h"

#include <string.h>

enum { DIMENSIONS = 5, SPATIAL = 3, MAP_BYTES = 128, PIECE = 16, LARGEST_BOX = 256, LARGEST_STEP = 8, MOST_PIXELS = 1024 };

/* Fields as in `_FORM` there: little-endian and without gaps. */
struct __attribute__((packed)) map {
    char magic[8];
    uint64_t base;
    uint8_t type, rank, swizzle, nan;
    uint64_t extent[DIMENSIONS], stride[DIMENSIONS - 1];
    uint16_t box[DIMENSIONS];
    uint8_t step[DIMENSIONS];
    uint8_t flags;
    int16_t lower[SPATIAL], upper[SPATIAL];
};
_Static_assert(sizeof(struct map) <= MAP_BYTES, "a map's fields fit into it");

/* The emulator's element types in the order of CUDA's CUtensorMapDataType: place among `DTYPES`, bytes. */
static const struct {
    uint8_t place, bytes;
} types[] = {{8, 1}, {9, 2}, {10, 4}, {6, 4}, {11, 8}, {7, 8}, {0, 2}, {2, 4}, {3, 8}, {1, 2}, {2, 4}, {2, 4}, {2, 4},
             {8, 1}};
/* Two elements of 4 bits that stay packed (16U4_ALIGN8B) are a byte here. */
enum { TYPES = sizeof types / sizeof *types, ALL_TYPES = 16, FIRST_FLOAT = 6, PAIRS = 13, LAST_FLOAT = PAIRS - 1 };
enum { IM2COL = 1, PAIRED = 2 };

/* Bytes of a row in shared memory that the swizzles of CUtensorMapSwizzle permute; the last two bits are the logarithm of
   the 16-byte pieces that stay together. None of 32-byte pieces with turned halves. */
enum { NO_SWIZZLE = 255, SPAN = 0xFC };
static const uint8_t swizzles[] = {0, 32, 64, 128, 128 | 1, NO_SWIZZLE, 128 | 2};
enum { SWIZZLES = sizeof swizzles };

/* What both kinds of maps have: all but the box. */
static int started(struct map *map, const void *made, int type, uint32_t rank, const void *base, const uint64_t *extents,
                   const uint64_t *strides, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill) {
    if (!made || (uintptr_t)made % 64 || (uintptr_t)base % PIECE || rank < 1 || rank > DIMENSIONS || !extents || !steps ||
        (rank > 1 && !strides) || type < 0 || type >= ALL_TYPES || interleave < 0 || interleave > 2 || swizzle < 0 ||
        swizzle >= SWIZZLES || promotion < 0 || promotion > 3 || fill < 0 || fill > 1)
        return ERROR_INVALID;
    if (type >= TYPES || interleave || swizzles[swizzle] == NO_SWIZZLE)
        return unsupported("cuTensorMapEncode (types that a copy pads, interleaved layouts, a swizzle that flips 8 bytes)");
    *map = (struct map){.magic = "drywarp\1", .base = N(base), .type = types[type].place, .rank = (uint8_t)rank,
                        .swizzle = swizzles[swizzle], .nan = (uint8_t)fill};
    if (fill && (type < FIRST_FLOAT || type > LAST_FLOAT))
        return ERROR_INVALID;
    for (uint32_t n = 0; n < rank; n++) {
        if (!extents[n] || extents[n] > 1ull << 32 || !steps[n] || steps[n] > LARGEST_STEP)
            return ERROR_INVALID;
        map->extent[n] = extents[n], map->step[n] = (uint8_t)steps[n];
        if (n + 1 < rank) {
            if (strides[n] % PIECE || strides[n] >= 1ull << 40)
                return ERROR_INVALID;
            map->stride[n] = strides[n];
        }
    }
    return 0;
}

static int finished(void *made, struct map *map, int type) {
    if (type == PAIRS) {
        if (map->extent[0] % 2 || map->box[0] % 2 || map->step[0] != 1)
            return ERROR_INVALID;
        map->extent[0] /= 2, map->box[0] /= 2, map->flags |= PAIRED;
    }
    uint64_t row = (uint64_t)map->box[0] * types[type].bytes;
    if (row % PIECE || (map->swizzle && row > (map->swizzle & SPAN)))
        return ERROR_INVALID;
    memset(made, 0, MAP_BYTES);
    memcpy(made, map, sizeof *map);
    return 0;
}

API int cuTensorMapEncodeTiled(void *made, int type, uint32_t rank, void *base, const uint64_t *extents,
                               const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                               int swizzle, int promotion, int fill) {
    struct map map;
    int error = !box ? ERROR_INVALID
                     : started(&map, made, type, rank, base, extents, strides, steps, interleave, swizzle, promotion, fill);
    if (error)
        return error;
    for (uint32_t n = 0; n < rank; n++) {
        if (!box[n] || box[n] > LARGEST_BOX)
            return ERROR_INVALID;
        map.box[n] = (uint16_t)box[n];
    }
    return finished(made, &map, type);
}

/* The box is (channels, pixels); the corners bound the spatial dimensions. */
API int cuTensorMapEncodeIm2col(void *made, int type, uint32_t rank, void *base, const uint64_t *extents,
                                const uint64_t *strides, const int *lower, const int *upper, uint32_t channels,
                                uint32_t pixels, const uint32_t *steps, int interleave, int swizzle, int promotion,
                                int fill) {
    static const int farthest[] = {0, 0, 0, 1 << 15, 1 << 7, 1 << 4};
    struct map map;
    int error = rank < 3 || !lower || !upper || !channels || channels > LARGEST_BOX || !pixels || pixels > MOST_PIXELS
                    ? ERROR_INVALID
                    : started(&map, made, type, rank, base, extents, strides, steps, interleave, swizzle, promotion, fill);
    if (error)
        return error;
    map.flags = IM2COL, map.box[0] = (uint16_t)channels, map.box[1] = (uint16_t)pixels;
    for (uint32_t n = 0; n + 2 < rank; n++) {
        int most = farthest[rank];
        if (lower[n] < -most || lower[n] >= most || upper[n] < -most || upper[n] >= most)
            return ERROR_INVALID;
        map.lower[n] = (int16_t)lower[n], map.upper[n] = (int16_t)upper[n];
    }
    return finished(made, &map, type);
}

/* The same tensor at another place. */
API int cuTensorMapReplaceAddress(void *made, void *base) {
    struct map *map = made;
    if (!made || (uintptr_t)base % PIECE || memcmp(map->magic, "drywarp\1", sizeof map->magic))
        return ERROR_INVALID;
    map->base = N(base);
    return 0;
}

/* The driver's functions by name, as programs find them that are not linked to it. */

int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status);

API int cudaGetDriverEntryPointByVersion(const char *name, void **found, unsigned version, unsigned long long flags, int *status) {
    int missing = 0;
    if (!name || !found)
        return noted(ERROR_INVALID);
    cuGetProcAddress_v2(name, found, (int)version, flags, &missing);
    if (status)
        *status = missing;
    return missing && !status ? noted(500) : 0;
}
ALSO(cudaGetDriverEntryPointByVersion_ptsz, cudaGetDriverEntryPointByVersion);
API int cudaGetDriverEntryPoint(const char *name, void **found, unsigned long long flags, int *status) {
    return cudaGetDriverEntryPointByVersion(name, found, 0, flags, status);
}
ALSO(cudaGetDriverEntryPoint_ptsz, cudaGetDriverEntryPoint);
