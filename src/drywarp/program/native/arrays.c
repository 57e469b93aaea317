/* Arrays, and the texture and surface objects over them. Texels lie row by row in device memory: the layout that a GPU
   chooses is not documented, and no function shows it. */
#include "wire.h"

#include <stdlib.h>

typedef int error_t;

struct channels {
    int bits[4];
    int kind; /* signed, unsigned, float */
};

struct array {
    void *texels;
    struct extent extent; /* as it was asked for: 0 where there is no such dimension */
    struct channels channels;
    unsigned flags;
};

enum { LAYERED = 1, CUBE = 4 };

static size_t at_least_one(size_t n) { return n ? n : 1; }

static size_t texel_bytes(const struct channels *channels) {
    int bits = 0;
    for (int n = 0; n < 4; n++)
        bits += channels->bits[n];
    return (size_t)bits / 8;
}

static size_t pitch_of(const struct array *array) {
    return array ? array->extent.width * texel_bytes(&array->channels) : 0;
}

API struct channels cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
    return (struct channels){{x, y, z, w}, kind};
}

API error_t cudaMalloc3DArray(struct array **made, const struct channels *channels, struct extent extent, unsigned flags) {
    if (!made || !channels || !extent.width || !texel_bytes(channels))
        return noted(ERROR_INVALID);
    struct array *array = calloc(1, sizeof *array);
    array->extent = extent, array->channels = *channels, array->flags = flags;
    size_t rows = at_least_one(extent.height) * at_least_one(extent.depth);
    error_t status = allocate(&array->texels, pitch_of(array) * rows, DEVICE, 0);
    if (status) {
        free(array);
        return status;
    }
    *made = array;
    return 0;
}

API error_t cudaMallocArray(struct array **made, const struct channels *channels, size_t width, size_t height, unsigned flags) {
    return cudaMalloc3DArray(made, channels, (struct extent){width, height, 0}, flags);
}

API error_t cudaFreeArray(struct array *array) {
    if (!array)
        return 0;
    error_t status = noted(ASK("free", N(array->texels), DEVICE).status);
    free(array);
    return status;
}

API error_t cudaArrayGetInfo(struct channels *channels, struct extent *extent, unsigned *flags, const struct array *array) {
    if (!array)
        return noted(ERROR_INVALID);
    if (channels)
        *channels = array->channels;
    if (extent)
        *extent = array->extent;
    if (flags)
        *flags = array->flags;
    return 0;
}

API error_t cudaGetChannelDesc(struct channels *channels, const struct array *array) {
    return cudaArrayGetInfo(channels, 0, 0, array);
}

/* Copies: x is in bytes where an array is named by itself, in texels in cudaMemcpy3D ------------------------------- */

static char *place_in(const struct array *array, size_t x, size_t y, size_t z) {
    if (!array)
        return NULL;
    return (char *)array->texels + x + pitch_of(array) * (y + at_least_one(array->extent.height) * z);
}

/* Whether bytes from x on lie in one row; no array has any. */
static int within(const struct array *array, size_t x, size_t width) {
    return array && x <= pitch_of(array) && width <= pitch_of(array) - x;
}

static error_t rows_to(struct array *to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
                       int kind, stream_t stream, int async) {
    if (!within(to, x, width))
        return noted(ERROR_INVALID);
    return copy(place_in(to, x, y, 0), pitch_of(to), from, pitch, width, height, kind, stream, async);
}
static error_t rows_from(void *to, size_t pitch, const struct array *from, size_t x, size_t y, size_t width, size_t height,
                         int kind, stream_t stream, int async) {
    if (!within(from, x, width))
        return noted(ERROR_INVALID);
    return copy(to, pitch, place_in(from, x, y, 0), pitch_of(from), width, height, kind, stream, async);
}

API error_t cudaMemcpy2DToArrayAsync(struct array *to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                     size_t height, int kind, stream_t stream) {
    return rows_to(to, x, y, from, pitch, width, height, kind, stream, 1);
}
ALSO(cudaMemcpy2DToArrayAsync_ptsz, cudaMemcpy2DToArrayAsync);
API error_t cudaMemcpy2DToArray(struct array *to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                size_t height, int kind) {
    return rows_to(to, x, y, from, pitch, width, height, kind, 0, 0);
}
ALSO(cudaMemcpy2DToArray_ptds, cudaMemcpy2DToArray);
API error_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, const struct array *from, size_t x, size_t y, size_t width,
                                       size_t height, int kind, stream_t stream) {
    return rows_from(to, pitch, from, x, y, width, height, kind, stream, 1);
}
ALSO(cudaMemcpy2DFromArrayAsync_ptsz, cudaMemcpy2DFromArrayAsync);
API error_t cudaMemcpy2DFromArray(void *to, size_t pitch, const struct array *from, size_t x, size_t y, size_t width,
                                  size_t height, int kind) {
    return rows_from(to, pitch, from, x, y, width, height, kind, 0, 0);
}
ALSO(cudaMemcpy2DFromArray_ptds, cudaMemcpy2DFromArray);
API error_t cudaMemcpy2DArrayToArray(struct array *to, size_t x, size_t y, const struct array *from, size_t from_x,
                                     size_t from_y, size_t width, size_t height, int kind) {
    if (!within(from, from_x, width))
        return noted(ERROR_INVALID);
    return rows_to(to, x, y, place_in(from, from_x, from_y, 0), pitch_of(from), width, height, kind, 0, 0);
}
ALSO(cudaMemcpy2DArrayToArray_ptds, cudaMemcpy2DArrayToArray);

/* Bytes that continue in the next row: rows of an array lie one after the other. */
API error_t cudaMemcpyToArrayAsync(struct array *to, size_t x, size_t y, const void *from, size_t bytes, int kind,
                                   stream_t stream) {
    return copy(place_in(to, x, y, 0), bytes, from, bytes, bytes, 1, kind, stream, 1);
}
ALSO(cudaMemcpyToArrayAsync_ptsz, cudaMemcpyToArrayAsync);
API error_t cudaMemcpyToArray(struct array *to, size_t x, size_t y, const void *from, size_t bytes, int kind) {
    return copy(place_in(to, x, y, 0), bytes, from, bytes, bytes, 1, kind, 0, 0);
}
ALSO(cudaMemcpyToArray_ptds, cudaMemcpyToArray);
API error_t cudaMemcpyFromArrayAsync(void *to, const struct array *from, size_t x, size_t y, size_t bytes, int kind,
                                     stream_t stream) {
    return copy(to, bytes, place_in(from, x, y, 0), bytes, bytes, 1, kind, stream, 1);
}
ALSO(cudaMemcpyFromArrayAsync_ptsz, cudaMemcpyFromArrayAsync);
API error_t cudaMemcpyFromArray(void *to, const struct array *from, size_t x, size_t y, size_t bytes, int kind) {
    return copy(to, bytes, place_in(from, x, y, 0), bytes, bytes, 1, kind, 0, 0);
}
ALSO(cudaMemcpyFromArray_ptds, cudaMemcpyFromArray);

static char *place_of(const struct array *array, struct position at, const struct pitched *memory, size_t z) {
    if (array)
        return place_in(array, at.x * texel_bytes(&array->channels), at.y, at.z + z);
    return (char *)memory->pointer + at.x + memory->pitch * (at.y + memory->height * (at.z + z));
}

int copy_volume(const struct copy3d *asked, stream_t stream, int async) {
    const struct array *from = asked->from_array, *to = asked->to_array, *some = from ? from : to;
    /* With an array the extent is in its texels. */
    size_t texel = some ? texel_bytes(&some->channels) : 1, width = asked->extent.width * texel;
    if ((to && !within(to, asked->to_at.x * texel, width)) || (from && !within(from, asked->from_at.x * texel, width)))
        return noted(ERROR_INVALID);
    for (size_t z = 0; z < asked->extent.depth; z++) {
        error_t status = copy(place_of(to, asked->to_at, &asked->to, z), to ? pitch_of(to) : asked->to.pitch,
                              place_of(from, asked->from_at, &asked->from, z), from ? pitch_of(from) : asked->from.pitch,
                              width, asked->extent.height, asked->kind, stream, async);
        if (status)
            return status;
    }
    return 0;
}
API error_t cudaMemcpy3D(const struct copy3d *asked) { return copy_volume(asked, 0, 0); }
ALSO(cudaMemcpy3D_ptds, cudaMemcpy3D);
API error_t cudaMemcpy3DAsync(const struct copy3d *asked, stream_t stream) { return copy_volume(asked, stream, 1); }
ALSO(cudaMemcpy3DAsync_ptsz, cudaMemcpy3DAsync);

/* Objects ------------------------------------------------------------------------------------------------------- */

enum { OF_ARRAY = 0, OF_MIPMAPPED = 1, OF_LINEAR = 2, OF_PITCHED = 3 };

struct resource {
    int type;
    union {
        const struct array *array;
        struct {
            void *pointer;
            struct channels channels;
            size_t bytes;
        } linear;
        struct {
            void *pointer;
            struct channels channels;
            size_t width, height, pitch;
        } pitched;
        int reserved[32];
    } of;
};

struct texture {
    int address[3], filter, read, srgb;
    float border[4];
    int normalized;
};

/* Handles from here on are objects: no number that a program computes is taken for one. */
static error_t create(uint64_t *made, const struct resource *resource, const struct texture *texture) {
    static const struct texture plain = {.address = {1, 1, 1}};
    struct array view = {0};
    size_t pitch = 0;
    if (!made || !resource)
        return noted(ERROR_INVALID);
    if (resource->type == OF_ARRAY && resource->of.array) {
        view = *resource->of.array;
    } else if (resource->type == OF_LINEAR) {
        view.texels = resource->of.linear.pointer, view.channels = resource->of.linear.channels;
        size_t texel = texel_bytes(&view.channels);
        view.extent.width = texel ? resource->of.linear.bytes / texel : 0;
    } else if (resource->type == OF_PITCHED) {
        view.texels = resource->of.pitched.pointer, view.channels = resource->of.pitched.channels;
        view.extent.width = resource->of.pitched.width, view.extent.height = resource->of.pitched.height;
        pitch = resource->of.pitched.pitch;
    } else {
        return resource->type == OF_MIPMAPPED ? unsupported("textures of mipmapped arrays") : noted(ERROR_INVALID);
    }
    const struct channels *channels = &view.channels;
    int count = 0;
    for (; count < 4 && channels->bits[count]; count++)
        if (channels->bits[count] != channels->bits[0])
            return unsupported("textures of channels with different widths");
    const struct texture *how = texture ? texture : &plain;
    for (int n = 1; n < 3; n++)
        if (how->address[n] != how->address[0] && (n == 1 ? view.extent.height : view.extent.depth) && !(view.flags & LAYERED))
            return unsupported("textures with another address mode in each dimension");
    if (how->srgb)
        return unsupported("textures of sRGB values");
    int64_t numbers[MOST_NUMBERS] = {
        N(view.texels), (int64_t)view.extent.width, (int64_t)view.extent.height, (int64_t)view.extent.depth,
        (int64_t)pitch, count, channels->bits[0], channels->kind, (int64_t)(view.flags & (LAYERED | CUBE)),
        texture != 0, how->address[0] | how->filter << 4 | how->read << 8 | how->normalized << 12};
    struct answer answer = ask_with("object", numbers, how->border, sizeof how->border, NULL, 0);
    *made = (uint64_t)answer.value[0];
    return noted(answer.status);
}

API error_t cudaCreateTextureObject(uint64_t *made, const struct resource *resource, const struct texture *texture,
                                    const void *view) {
    if (view)
        return unsupported("textures with a resource view");
    return texture ? create(made, resource, texture) : noted(ERROR_INVALID);
}
API error_t cudaCreateSurfaceObject(uint64_t *made, const struct resource *resource) { return create(made, resource, 0); }
API error_t cudaDestroyTextureObject(uint64_t object) { return noted(ASK("object_destroy", (int64_t)object).status); }
ALSO(cudaDestroySurfaceObject, cudaDestroyTextureObject);
