/* Tensor maps that a program makes itself, and how it finds the driver's functions through the runtime.

   The emulator reads them (execution/emulator/tensor_maps.py). A tiled map is encoded as hardware has it, so that a kernel
   can change it by `tensormap.replace`, which compiles to plain stores; an im2col map, which no instruction changes, has an
   encoding of ours. What the driver refuses is refused here. */
#include "wire.h"

#include <string.h>

enum { DIMENSIONS = 5, SPATIAL = 3, MAP_BYTES = 128, PIECE = 16, LARGEST_BOX = 256, LARGEST_STEP = 8, MOST_PIXELS = 1024 };

/* A map before it is encoded. */
struct map {
    uint64_t base;
    uint8_t type, rank, swizzle, nan;
    uint64_t extent[DIMENSIONS], stride[DIMENSIONS - 1];
    uint16_t box[DIMENSIONS];
    uint8_t step[DIMENSIONS];
};

/* As `_TILED` and `_COLUMNS` there: little-endian and without gaps. */
struct __attribute__((packed)) tiled {
    uint64_t base;
    uint32_t kind, stride[DIMENSIONS - 1], strides_above, last[DIMENSIONS], steps;
    uint8_t box[DIMENSIONS - 1]; /* the first extent is above the steps */
};
struct __attribute__((packed)) columns {
    uint64_t base;
    char magic[8];
    uint8_t type, rank, swizzle, nan;
    uint64_t extent[DIMENSIONS], stride[DIMENSIONS - 1];
    uint16_t box[2];
    uint8_t step[DIMENSIONS];
    int16_t lower[SPATIAL], upper[SPATIAL];
};
_Static_assert(sizeof(struct tiled) == 60 && sizeof(struct columns) <= MAP_BYTES, "a map's fields fit into it");

/* Element types in the order of CUDA's CUtensorMapDataType: number in a map, bytes. */
static const struct {
    uint8_t number, bytes;
} types[] = {{0, 1}, {1, 2}, {2, 4}, {3, 4}, {4, 8}, {5, 8}, {6, 2}, {7, 4}, {9, 8}, {10, 2}, {8, 4}, {7, 4}, {8, 4},
             {11, 0}, {12, 0}, {13, 0}};
/* Two elements of 4 bits stay packed in a byte (16U4_ALIGN8B); 16 of 4 or 6 bits take 16 bytes of shared memory. */
enum { TYPES = sizeof types / sizeof *types, FIRST_FLOAT = 6, FIRST_TF32 = 11, LAST_FLOAT = 12, PAIRS = 13, PADDED_4 = 14,
       PADDED_6 = 15, PADDED_BOX = 128, PADDED_ALIGNMENT = 32 };

/* By CUtensorMapSwizzle: 32, 64 or 128 bytes of a row in shared memory are permuted (1 to 3); above that, what stays
   together: 16-byte pieces, two or four of them (3). None of 32-byte pieces with turned halves. */
enum { NO_SWIZZLE = 255 };
static const uint8_t swizzles[] = {0, 1, 2, 3, 1 << 2 | 3, NO_SWIZZLE, 3 << 2 | 3};
enum { SWIZZLES = sizeof swizzles };

/* What both kinds of maps have: all but the box. */
static int started(struct map *map, const void *made, int type, uint32_t rank, const void *base, const uint64_t *extents,
                   const uint64_t *strides, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill) {
    if (!made || (uintptr_t)made % 64 || (uintptr_t)base % PIECE || rank < 1 || rank > DIMENSIONS || !extents || !steps ||
        (rank > 1 && !strides) || type < 0 || type >= TYPES || interleave < 0 || interleave > 2 || swizzle < 0 ||
        swizzle >= SWIZZLES || promotion < 0 || promotion > 3 || fill < 0 || fill > 1)
        return ERROR_INVALID;
    if (interleave || swizzles[swizzle] == NO_SWIZZLE)
        return unsupported("cuTensorMapEncode (interleaved layouts, a swizzle that flips 8 bytes)");
    *map = (struct map){.base = N(base), .type = types[type].number, .rank = (uint8_t)rank, .swizzle = swizzles[swizzle],
                        .nan = (uint8_t)fill};
    if (fill && (type < FIRST_FLOAT || type > LAST_FLOAT))
        return ERROR_INVALID;
    for (uint32_t n = 0; n < rank; n++) {
        if (!extents[n] || extents[n] > 1ull << 32 || !steps[n] || steps[n] > LARGEST_STEP)
            return ERROR_INVALID;
        map->extent[n] = extents[n], map->step[n] = (uint8_t)steps[n];
        if (n + 1 < rank) {
            if (strides[n] % (type >= PADDED_4 ? PADDED_ALIGNMENT : PIECE) || strides[n] >= 1ull << 40)
                return ERROR_INVALID;
            map->stride[n] = strides[n];
        }
    }
    return 0;
}

/* Whether the rows of a box are such as the driver takes. */
static int fits(const struct map *map, int type) {
    if (type == PAIRS && (map->extent[0] % 2 || map->box[0] % 2 || map->step[0] != 1))
        return 0;
    if (type >= PADDED_4) {
        int within = map->swizzle & 3, together = map->swizzle >> 2;
        return map->base % PADDED_ALIGNMENT == 0 && map->extent[0] % PADDED_BOX == 0 && map->box[0] == PADDED_BOX &&
               map->step[0] == 1 && (!within || (within == 3 && (together < 3 || type == PADDED_6)));
    }
    int row = type == PAIRS ? map->box[0] / 2 : map->box[0] * types[type].bytes, kind = map->swizzle & 3;
    return row % PIECE == 0 && (!kind || row <= PIECE << kind);
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
    if (!fits(&map, type))
        return ERROR_INVALID;
    struct tiled tiled = {.base = map.base, .kind = (rank - 1) << 4 | (uint32_t)map.type << 7 | (map.swizzle & 3u) << 13 |
                                                    (uint32_t)map.nan << 15 | (uint32_t)map.swizzle >> 2 << 19 |
                                                    (uint32_t)(type >= FIRST_TF32 && type <= LAST_FLOAT) << 16};
    for (uint32_t n = 0; n < rank; n++) {
        tiled.last[n] = (uint32_t)(map.extent[n] - 1);
        tiled.steps |= (map.step[n] - 1u) << 3 * n;
        if (n)
            tiled.box[n - 1] = (uint8_t)(map.box[n] - 1);
        else
            tiled.steps |= (map.box[0] - 1u) << 24;
        if (n + 1 < rank) {
            tiled.stride[n] = (uint32_t)(map.stride[n] >> 4);
            tiled.strides_above |= (uint32_t)(map.stride[n] >> 36) << 4 * n;
        }
    }
    memset(made, 0, MAP_BYTES);
    memcpy(made, &tiled, sizeof tiled);
    return 0;
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
    map.box[0] = (uint16_t)channels, map.box[1] = (uint16_t)pixels;
    struct columns columns = {map.base, "", map.type, map.rank, map.swizzle, map.nan, .box = {map.box[0], map.box[1]}};
    memcpy(columns.magic, "drYwarp\1", sizeof columns.magic);
    memcpy(columns.extent, map.extent, sizeof map.extent);
    memcpy(columns.stride, map.stride, sizeof map.stride);
    memcpy(columns.step, map.step, sizeof map.step);
    for (uint32_t n = 0; n + 2 < rank; n++) {
        int most = farthest[rank];
        if (lower[n] < -most || lower[n] >= most || upper[n] < -most || upper[n] >= most)
            return ERROR_INVALID;
        columns.lower[n] = (int16_t)lower[n], columns.upper[n] = (int16_t)upper[n];
    }
    if (!fits(&map, type))
        return ERROR_INVALID;
    memset(made, 0, MAP_BYTES);
    memcpy(made, &columns, sizeof columns);
    return 0;
}

/* The same tensor at another place. */
API int cuTensorMapReplaceAddress(void *made, void *base) {
    if (!made || (uintptr_t)made % 64 || (uintptr_t)base % PIECE)
        return ERROR_INVALID;
    *(uint64_t *)made = N(base); /* in both encodings */
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
