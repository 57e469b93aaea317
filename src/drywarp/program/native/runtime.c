/* The functions of the CUDA runtime that programs call: each asks drywarp, and moves the program's bytes itself.

   Handles and codes are the runtime's own; what drywarp does not know by name is in rest.c. */
#define _GNU_SOURCE
#include "wire.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int error_t;
typedef void *event_t;

static __thread error_t last;

error_t noted(error_t status) {
    /* 600 says that something is still running, which is no error. */
    if (status && status != 600)
        last = status;
    return status;
}

static error_t say(struct answer answer) { return noted(answer.status); }

#define DO(name, ...) say(ASK(name, __VA_ARGS__))

__attribute__((constructor)) static void begin(void) {
    if (getenv("DRYWARP_RUN_SOCKET"))
        redirect_static_runtime();
}

int unsupported(const char *name) {
    return noted(ask_with("unsupported", (int64_t[MOST_NUMBERS]){0}, name, strlen(name), NULL, 0).status);
}

/* Errors -------------------------------------------------------------------------------------------------------- */

API error_t cudaGetLastError(void) {
    error_t status = last ? last : ASK("peek").status;
    last = 0;
    return status;
}

API error_t cudaPeekAtLastError(void) { return last ? last : ASK("peek").status; }

const char *text_of(error_t code, int which) {
    enum { CODES = 1024, ROOM = 160 };
    static char *texts[CODES];
    static char unknown[] = "unrecognized error code";
    if (code < 0 || code >= CODES)
        return unknown;
    if (!texts[code]) {
        char *text = calloc(2, ROOM);
        ask_with("error", (int64_t[MOST_NUMBERS]){code}, NULL, 0, text, 2 * ROOM - 1);
        texts[code] = text;
    }
    return which ? texts[code] + strlen(texts[code]) + 1 : texts[code];
}

API const char *cudaGetErrorName(error_t code) { return text_of(code, 0); }
API const char *cudaGetErrorString(error_t code) { return text_of(code, 1); }

/* Kernels and variables ----------------------------------------------------------------------------------------- */

struct wrapper {
    int magic, version;
    const void *data;
    void *file;
};

API void **__cudaRegisterFatBinary(void *binary) {
    const struct wrapper *wrapper = binary;
    const uint16_t *head = wrapper->data;
    uint64_t bytes = head[3]; /* of the header */
    uint64_t content;
    memcpy(&content, (const char *)wrapper->data + 8, sizeof content);
    bytes += content;
    struct answer answer = ask_with("register", (int64_t[MOST_NUMBERS]){0}, wrapper->data, bytes, NULL, 0);
    int64_t *handle = malloc(sizeof *handle);
    *handle = answer.value[0];
    return (void **)handle;
}

API void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
API void __cudaUnregisterFatBinary(void **handle) { (void)handle; }
API char __cudaInitModule(void **handle) {
    (void)handle;
    return 1;
}

static int64_t module_of(void **handle) { return *(int64_t *)handle; }

API void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid,
                                void *bid, void *block, void *grid, int *size) {
    (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)size;
    ask_with("function", (int64_t[MOST_NUMBERS]){module_of(handle), N(host)}, name, strlen(name), NULL, 0);
}

API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t size,
                           int constant, int global) {
    (void)device, (void)external, (void)global;
    int64_t numbers[MOST_NUMBERS] = {module_of(handle), N(host), (int64_t)size, constant};
    ask_with("variable", numbers, name, strlen(name), NULL, 0);
}

API void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external, size_t size,
                                  int constant, int global) {
    (void)device, (void)external, (void)global;
    int64_t numbers[MOST_NUMBERS] = {module_of(handle), N(host), (int64_t)size, constant};
    struct answer answer = ask_with("variable", numbers, name, strlen(name), NULL, 0);
    struct answer place = ASK("symbol", N(host));
    if (!answer.status && !place.status)
        *host = (void *)(intptr_t)place.value[0];
}

API void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size) {
    (void)handle, (void)name, (void)host, (void)size;
}

struct layout {
    const void *function;
    int parameters;
    size_t bytes;
    int32_t place[2 * 1024]; /* offset and size of each parameter */
    struct layout *next;
};

static struct layout *layouts;
static pthread_mutex_t layouts_lock = PTHREAD_MUTEX_INITIALIZER;

static error_t layout_of(const void *function, const struct layout **found) {
    pthread_mutex_lock(&layouts_lock);
    struct layout *one = layouts;
    while (one && one->function != function)
        one = one->next;
    error_t status = 0;
    if (!one) {
        one = calloc(1, sizeof *one);
        int64_t numbers[MOST_NUMBERS] = {N(function)};
        struct answer answer = ask_with("layout", numbers, NULL, 0, one->place, sizeof one->place);
        one->function = function;
        one->bytes = (size_t)answer.value[0];
        one->parameters = (int)(answer.bytes / (2 * sizeof(int32_t)));
        status = answer.status;
        if (status) {
            free(one);
        } else {
            one->next = layouts;
            layouts = one;
        }
    }
    pthread_mutex_unlock(&layouts_lock);
    *found = one;
    return status;
}

int launch(const void *function, dim3 grid, dim3 block, void **arguments, const void *packed, size_t shared,
           stream_t stream, int cooperative, dim3 cluster) {
    const struct layout *layout;
    error_t status = layout_of(function, &layout);
    if (status)
        return status;
    char *parameters = calloc(1, layout->bytes + 1);
    for (int n = 0; n < layout->parameters; n++) {
        const void *from = packed ? (const char *)packed + layout->place[2 * n] : arguments[n];
        memcpy(parameters + layout->place[2 * n], from, (size_t)layout->place[2 * n + 1]);
    }
    int64_t blocks = (int64_t)cluster.x | (int64_t)cluster.y << 16 | (int64_t)cluster.z << 32;
    int64_t numbers[MOST_NUMBERS] = {N(function), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                     (int64_t)shared, N(stream), cooperative, blocks};
    status = ask_with("launch", numbers, parameters, layout->bytes, NULL, 0).status;
    free(parameters);
    return status;
}

const void *packed_in(void **extra) {
    enum { BUFFER = 1 };
    for (int n = 0; extra && extra[n]; n += 2)
        if (extra[n] == (void *)BUFFER)
            return extra[n + 1];
    return NULL;
}

API error_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, stream_t stream) {
    return noted(launch(function, grid, block, arguments, NULL, shared, stream, 0, ALONE));
}
ALSO(cudaLaunchKernel_ptsz, cudaLaunchKernel);
ALSO(__cudaLaunchKernel, cudaLaunchKernel);
ALSO(__cudaLaunchKernel_ptsz, cudaLaunchKernel);

API error_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                        stream_t stream) {
    return noted(launch(function, grid, block, arguments, NULL, shared, stream, 1, ALONE));
}
ALSO(cudaLaunchCooperativeKernel_ptsz, cudaLaunchCooperativeKernel);

void read_attributes(const struct launch_attribute *attributes, unsigned count, int *cooperative, dim3 *cluster) {
    enum { COOPERATIVE = 2, CLUSTER = 4, PROGRAMMATIC = 6, WITH_EARLIER = 2 };
    for (unsigned n = 0; n < count; n++) {
        if (attributes[n].id == COOPERATIVE)
            *cooperative |= attributes[n].value.number != 0;
        if (attributes[n].id == PROGRAMMATIC && attributes[n].value.number)
            *cooperative |= WITH_EARLIER;
        if (attributes[n].id == CLUSTER)
            *cluster = attributes[n].value.cluster;
    }
}

struct launch_config {
    dim3 grid, block;
    size_t shared;
    stream_t stream;
    struct launch_attribute *attributes;
    unsigned count;
};

API error_t cudaLaunchKernelExC(const struct launch_config *config, const void *function, void **arguments) {
    dim3 cluster = ALONE;
    int cooperative = 0;
    read_attributes(config->attributes, config->count, &cooperative, &cluster);
    return noted(launch(function, config->grid, config->block, arguments, NULL, config->shared, config->stream,
                        cooperative, cluster));
}
ALSO(cudaLaunchKernelExC_ptsz, cudaLaunchKernelExC);

API error_t cudaOccupancyMaxActiveClusters(int *clusters, const void *function, const struct launch_config *config) {
    dim3 cluster = ALONE, block = config->block;
    int ignored = 0;
    read_attributes(config->attributes, config->count, &ignored, &cluster);
    int64_t threads = (int64_t)block.x * block.y * block.z, blocks = (int64_t)cluster.x * cluster.y * cluster.z;
    struct answer answer = ASK("clusters", N(function), threads, (int64_t)config->shared, blocks);
    *clusters = (int)answer.value[0];
    return say(answer);
}

/* nvcc 13 asks for a kernel's handle first; a kernel's address in the program serves as one. */
API error_t __cudaGetKernel(void **kernel, const void *function) {
    *kernel = (void *)function;
    return 0;
}
ALSO(cudaGetKernel, __cudaGetKernel);
ALSO(cudaGetFuncBySymbol, __cudaGetKernel);

/* <<<>>> stores its configuration before the arguments are computed, which may contain a launch of their own. */
static __thread struct {
    dim3 grid, block;
    size_t shared;
    void *stream;
} configurations[64];
static __thread int depth;

API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
    if (depth == (int)(sizeof configurations / sizeof *configurations))
        return ERROR_INVALID;
    configurations[depth].grid = grid, configurations[depth].block = block;
    configurations[depth].shared = shared, configurations[depth].stream = stream;
    depth++;
    return 0;
}

API error_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    if (!depth)
        return noted(52);
    depth--;
    *grid = configurations[depth].grid, *block = configurations[depth].block;
    *shared = configurations[depth].shared, *(void **)stream = configurations[depth].stream;
    return 0;
}

API error_t cudaFuncGetAttributes(void *attributes, const void *function) {
    /* shared, constant and local bytes; threads per block, registers, PTX and machine code versions, ... */
    int64_t numbers[MOST_NUMBERS] = {N(function)};
    char content[52] = {0};
    struct answer answer = ask_with("function_attributes", numbers, NULL, 0, content, sizeof content);
    if (!answer.status)
        memcpy(attributes, content, sizeof content);
    return say(answer);
}

API error_t cudaFuncSetAttribute(const void *function, int attribute, int value) {
    return DO("function_set", N(function), attribute, value);
}
API error_t cudaFuncSetCacheConfig(const void *function, int config) {
    (void)function, (void)config;
    return 0;
}
API error_t cudaFuncSetSharedMemConfig(const void *function, int config) {
    (void)function, (void)config;
    return 0;
}

API error_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int threads,
                                                                   size_t shared, unsigned flags) {
    struct answer answer = ASK("occupancy", N(function), threads, (int64_t)shared, flags);
    *blocks = (int)answer.value[0];
    return say(answer);
}
API error_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads, size_t shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared, 0);
}
API error_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks, int threads) {
    struct answer answer = ASK("occupancy_shared", N(function), blocks, threads);
    *bytes = (size_t)answer.value[0];
    return say(answer);
}

/* Memory -------------------------------------------------------------------------------------------------------- */

int allocate(void **pointer, size_t bytes, int kind, stream_t stream) {
    if (!pointer)
        return noted(ERROR_INVALID);
    struct answer answer = ASK("malloc", (int64_t)bytes, kind, N(stream));
    *pointer = (void *)(intptr_t)answer.value[0];
    return say(answer);
}

API error_t cudaMalloc(void **pointer, size_t bytes) { return allocate(pointer, bytes, DEVICE, 0); }
API error_t cudaMallocHost(void **pointer, size_t bytes) { return allocate(pointer, bytes, PINNED, 0); }
API error_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    (void)flags;
    return allocate(pointer, bytes, PINNED, 0);
}
API error_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags) {
    (void)flags;
    return allocate(pointer, bytes, MANAGED, 0);
}
API error_t cudaMallocAsync(void **pointer, size_t bytes, stream_t stream) {
    return allocate(pointer, bytes, DEVICE, stream);
}
ALSO(cudaMallocAsync_ptsz, cudaMallocAsync);
/* A pool's handle tells its device, and no more: pools give memory back when it is freed. */
enum { MOST_DEVICES = 16 };
static char pools[MOST_DEVICES];
static int is_pool(void *pool) { return (char *)pool >= pools && (char *)pool < pools + MOST_DEVICES; }
static int has_device(int device) { return device >= 0 && device < MOST_DEVICES; }

API error_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, void *pool, stream_t stream) {
    int before = current_device;
    if (!is_pool(pool))
        return noted(ERROR_INVALID);
    current_device = (int)((char *)pool - pools);
    error_t status = allocate(pointer, bytes, DEVICE, stream);
    current_device = before;
    return status;
}
ALSO(cudaMallocFromPoolAsync_ptsz, cudaMallocFromPoolAsync);

static const size_t PITCH = 512;

API error_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    *pitch = (width + PITCH - 1) / PITCH * PITCH;
    return allocate(pointer, *pitch * height, DEVICE, 0);
}

API error_t cudaMalloc3D(struct pitched *made, struct extent extent) {
    made->width = extent.width, made->height = extent.height;
    made->pitch = (extent.width + PITCH - 1) / PITCH * PITCH;
    return allocate(&made->pointer, made->pitch * extent.height * extent.depth, DEVICE, 0);
}

API error_t cudaFree(void *pointer) { return DO("free", N(pointer), DEVICE); }
API error_t cudaFreeHost(void *pointer) { return DO("free", N(pointer), PINNED); }
API error_t cudaFreeAsync(void *pointer, stream_t stream) { return DO("free", N(pointer), DEVICE, N(stream)); }
ALSO(cudaFreeAsync_ptsz, cudaFreeAsync);

API error_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
    (void)flags;
    struct answer answer = ASK("device_pointer", N(host));
    *device = (void *)(intptr_t)answer.value[0];
    return say(answer);
}
API error_t cudaHostGetFlags(unsigned *flags, void *host) {
    (void)host;
    *flags = 0;
    return 0;
}
API error_t cudaMemGetInfo(size_t *left, size_t *total) {
    struct answer answer = ASK("memory_info");
    *left = (size_t)answer.value[0], *total = (size_t)answer.value[1];
    return say(answer);
}
API error_t cudaMemAdvise(const void *pointer, size_t bytes, int advice, int64_t device) {
    (void)pointer, (void)bytes, (void)advice, (void)device;
    return 0;
}
ALSO(cudaMemAdvise_v2, cudaMemAdvise);
API error_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, int64_t device, stream_t stream) {
    (void)device;
    return DO("prefetch", N(pointer), (int64_t)bytes, N(stream));
}
ALSO(cudaMemPrefetchAsync_v2, cudaMemPrefetchAsync);
ALSO(cudaMemPrefetchAsync_ptsz, cudaMemPrefetchAsync);
ALSO(cudaMemPrefetchAsync_v2_ptsz, cudaMemPrefetchAsync);

struct pointer_attributes {
    int type, device;
    void *on_device, *on_host;
};

API error_t cudaPointerGetAttributes(struct pointer_attributes *found, const void *pointer) {
    struct answer answer = ASK("pointer", N(pointer));
    int type = (int)answer.value[0]; /* 0 unregistered, 1 host, 2 device, 3 managed */
    *found = (struct pointer_attributes){type, type ? (int)answer.value[3] : -2, type ? (void *)pointer : NULL,
                                         type == 2 ? NULL : (void *)pointer};
    return say(answer);
}

/* Copies: drywarp checks them and says how long they take; the bytes move here. --------------------------------- */

void move(const int64_t *n) {
    char *to = (char *)(intptr_t)n[0];
    const char *from = (const char *)(intptr_t)n[1];
    for (int64_t row = 0; row < n[3]; row++)
        memmove(to + row * n[4], from + row * n[5], (size_t)n[2]);
}

int copy(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind,
         stream_t stream, int async) {
    int64_t numbers[MOST_NUMBERS] = {N(to), N(from), (int64_t)width, (int64_t)height, (int64_t)to_pitch,
                                     (int64_t)from_pitch, kind, N(stream), async};
    struct answer answer = ask_with("copy", numbers, NULL, 0, NULL, 0);
    if (!answer.status && answer.value[0])
        move(numbers);
    return say(answer);
}

API error_t cudaMemcpy(void *to, const void *from, size_t bytes, int kind) {
    return copy(to, bytes, from, bytes, bytes, 1, kind, 0, 0);
}
ALSO(cudaMemcpy_ptds, cudaMemcpy);
API error_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, stream_t stream) {
    return copy(to, bytes, from, bytes, bytes, 1, kind, stream, 1);
}
ALSO(cudaMemcpyAsync_ptsz, cudaMemcpyAsync);
API error_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         int kind) {
    return copy(to, to_pitch, from, from_pitch, width, height, kind, 0, 0);
}
ALSO(cudaMemcpy2D_ptds, cudaMemcpy2D);
API error_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                              int kind, stream_t stream) {
    return copy(to, to_pitch, from, from_pitch, width, height, kind, stream, 1);
}
ALSO(cudaMemcpy2DAsync_ptsz, cudaMemcpy2DAsync);
API error_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes) {
    (void)to_device, (void)from_device;
    return copy(to, bytes, from, bytes, bytes, 1, 3, 0, 0);
}
API error_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, stream_t stream) {
    (void)to_device, (void)from_device;
    return copy(to, bytes, from, bytes, bytes, 1, 3, stream, 1);
}

static error_t fill(void *pointer, size_t pitch, int value, size_t width, size_t height, stream_t stream, int async) {
    int64_t numbers[MOST_NUMBERS] = {N(pointer), value, (int64_t)width, (int64_t)height, (int64_t)pitch, N(stream), async};
    return say(ask_with("fill", numbers, NULL, 0, NULL, 0));
}
API error_t cudaMemset(void *pointer, int value, size_t bytes) { return fill(pointer, bytes, value, bytes, 1, 0, 0); }
ALSO(cudaMemset_ptds, cudaMemset);
API error_t cudaMemsetAsync(void *pointer, int value, size_t bytes, stream_t stream) {
    return fill(pointer, bytes, value, bytes, 1, stream, 1);
}
ALSO(cudaMemsetAsync_ptsz, cudaMemsetAsync);
API error_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height) {
    return fill(pointer, pitch, value, width, height, 0, 0);
}
ALSO(cudaMemset2D_ptds, cudaMemset2D);
API error_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height, stream_t stream) {
    return fill(pointer, pitch, value, width, height, stream, 1);
}
ALSO(cudaMemset2DAsync_ptsz, cudaMemset2DAsync);
API error_t cudaMemset3D(struct pitched at, int value, struct extent extent) {
    return fill(at.pointer, at.pitch, value, extent.width, at.height * extent.depth, 0, 0);
}
ALSO(cudaMemset3D_ptds, cudaMemset3D);

static error_t place_of(const void *symbol, size_t bytes, size_t offset, char **place) {
    struct answer answer = ASK("symbol", N(symbol));
    if (!answer.status && offset + bytes > (size_t)answer.value[1])
        answer.status = ERROR_INVALID;
    *place = (char *)(intptr_t)answer.value[0] + offset;
    return say(answer);
}
API error_t cudaGetSymbolAddress(void **pointer, const void *symbol) { return place_of(symbol, 0, 0, (char **)pointer); }
API error_t cudaGetSymbolSize(size_t *bytes, const void *symbol) {
    struct answer answer = ASK("symbol", N(symbol));
    *bytes = (size_t)answer.value[1];
    return say(answer);
}
API error_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset, int kind,
                                    stream_t stream) {
    char *place;
    error_t status = place_of(symbol, bytes, offset, &place);
    return status ? status : copy(place, bytes, from, bytes, bytes, 1, kind, stream, 1);
}
ALSO(cudaMemcpyToSymbolAsync_ptsz, cudaMemcpyToSymbolAsync);
API error_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, int kind) {
    char *place;
    error_t status = place_of(symbol, bytes, offset, &place);
    return status ? status : copy(place, bytes, from, bytes, bytes, 1, kind, 0, 0);
}
ALSO(cudaMemcpyToSymbol_ptds, cudaMemcpyToSymbol);
API error_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset, int kind, stream_t stream) {
    char *place;
    error_t status = place_of(symbol, bytes, offset, &place);
    return status ? status : copy(to, bytes, place, bytes, bytes, 1, kind, stream, 1);
}
ALSO(cudaMemcpyFromSymbolAsync_ptsz, cudaMemcpyFromSymbolAsync);
API error_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, int kind) {
    char *place;
    error_t status = place_of(symbol, bytes, offset, &place);
    return status ? status : copy(to, bytes, place, bytes, bytes, 1, kind, 0, 0);
}
ALSO(cudaMemcpyFromSymbol_ptds, cudaMemcpyFromSymbol);

/* Streams and events -------------------------------------------------------------------------------------------- */

API error_t cudaStreamCreateWithPriority(stream_t *stream, unsigned flags, int priority) {
    struct answer answer = ASK("stream_create", flags, priority);
    *stream = (stream_t)(intptr_t)answer.value[0];
    return say(answer);
}
API error_t cudaStreamCreateWithFlags(stream_t *stream, unsigned flags) {
    return cudaStreamCreateWithPriority(stream, flags, 0);
}
API error_t cudaStreamCreate(stream_t *stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }
API error_t cudaStreamDestroy(stream_t stream) { return DO("stream_destroy", N(stream)); }
API error_t cudaStreamSynchronize(stream_t stream) { return DO("stream_wait", N(stream)); }
ALSO(cudaStreamSynchronize_ptsz, cudaStreamSynchronize);
API error_t cudaStreamQuery(stream_t stream) { return DO("stream_wait", N(stream)); }
ALSO(cudaStreamQuery_ptsz, cudaStreamQuery);
API error_t cudaStreamWaitEvent(stream_t stream, event_t event, unsigned flags) {
    return DO("stream_wait_event", N(stream), N(event), flags);
}
ALSO(cudaStreamWaitEvent_ptsz, cudaStreamWaitEvent);
API error_t cudaStreamGetFlags(stream_t stream, unsigned *flags) {
    struct answer answer = ASK("stream_flags", N(stream));
    *flags = (unsigned)answer.value[0];
    return say(answer);
}
ALSO(cudaStreamGetFlags_ptsz, cudaStreamGetFlags);
API error_t cudaStreamGetPriority(stream_t stream, int *priority) {
    struct answer answer = ASK("stream_flags", N(stream));
    *priority = (int)answer.value[1];
    return say(answer);
}
ALSO(cudaStreamGetPriority_ptsz, cudaStreamGetPriority);
API error_t cudaStreamAttachMemAsync(stream_t stream, void *pointer, size_t bytes, unsigned flags) {
    (void)stream, (void)pointer, (void)bytes, (void)flags;
    return 0;
}
ALSO(cudaStreamAttachMemAsync_ptsz, cudaStreamAttachMemAsync);

API error_t cudaLaunchHostFunc(stream_t stream, void (*function)(void *), void *data) {
    struct answer answer = ASK("host_function", N(stream), N(function), N(data));
    if (!answer.status && answer.value[0])
        function(data);
    return say(answer);
}
ALSO(cudaLaunchHostFunc_ptsz, cudaLaunchHostFunc);
API error_t cudaStreamAddCallback(stream_t stream, void (*function)(stream_t, error_t, void *), void *data, unsigned flags) {
    (void)flags;
    error_t status = DO("stream_wait", N(stream));
    function(stream, status, data);
    return status;
}
ALSO(cudaStreamAddCallback_ptsz, cudaStreamAddCallback);

API error_t cudaEventCreateWithFlags(event_t *event, unsigned flags) {
    struct answer answer = ASK("event_create", flags);
    *event = (event_t)(intptr_t)answer.value[0];
    return say(answer);
}
API error_t cudaEventCreate(event_t *event) { return cudaEventCreateWithFlags(event, 0); }
API error_t cudaEventDestroy(event_t event) { return DO("event_destroy", N(event)); }
API error_t cudaEventRecord(event_t event, stream_t stream) { return DO("event_record", N(event), N(stream)); }
ALSO(cudaEventRecord_ptsz, cudaEventRecord);
API error_t cudaEventRecordWithFlags(event_t event, stream_t stream, unsigned flags) {
    (void)flags;
    return cudaEventRecord(event, stream);
}
ALSO(cudaEventRecordWithFlags_ptsz, cudaEventRecordWithFlags);
API error_t cudaEventSynchronize(event_t event) { return DO("event_wait", N(event)); }
API error_t cudaEventQuery(event_t event) { return DO("event_wait", N(event)); }
API error_t cudaEventElapsedTime(float *milliseconds, event_t from, event_t to) {
    struct answer answer = ASK("event_elapsed", N(from), N(to));
    if (!answer.status)
        *milliseconds = (float)((double)answer.value[0] * 1e-6);
    return say(answer);
}

/* The device ---------------------------------------------------------------------------------------------------- */

API error_t cudaGetDeviceCount(int *count) {
    struct answer answer = ASK("devices");
    *count = (int)answer.value[0];
    return say(answer);
}
API error_t cudaGetDevice(int *device) {
    *device = current_device;
    return 0;
}
API error_t cudaSetDevice(int device) {
    error_t status = DO("device_set", device);
    if (!status)
        current_device = device;
    return status;
}
API error_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
    (void)device_flags, (void)flags;
    return DO("device_set", device);
}
API error_t cudaSetValidDevices(int *devices, int count) {
    (void)devices, (void)count;
    return 0;
}
API error_t cudaSetDeviceFlags(unsigned flags) {
    (void)flags;
    return 0;
}
API error_t cudaGetDeviceFlags(unsigned *flags) {
    *flags = 0;
    return 0;
}
API error_t cudaChooseDevice(int *device, const void *properties) {
    (void)properties;
    *device = 0;
    return 0;
}
API error_t cudaDeviceGetAttribute(int *value, int attribute, int device) {
    struct answer answer = ASK("attribute", attribute, device);
    *value = (int)answer.value[0];
    return say(answer);
}

/* The structure's size and places differ by version: `version` 12 has 1032 bytes, 13 has 1008. */
static error_t properties(void *found, int device, int version) {
    enum { BYTES_11 = 712, BYTES_12 = 1032, BYTES_13 = 1008 };
    char content[BYTES_12] = {0};
    int64_t numbers[MOST_NUMBERS] = {device, version};
    struct answer answer = ask_with("properties", numbers, NULL, 0, content, sizeof content);
    size_t bytes = version == 13 ? BYTES_13 : version == 12 ? BYTES_12 : BYTES_11;
    if (!answer.status)
        memcpy(found, content, bytes);
    return say(answer);
}
API error_t cudaGetDeviceProperties_v2(void *found, int device) { return properties(found, device, 12); }
API error_t cudaGetDeviceProperties(void *found, int device) {
    /* CUDA 12 calls the one above, so this is CUDA 13 or 11, whichever the program was made with. */
    return properties(found, device, (int)ASK("driver_version").value[0] >= 13000 ? 13 : 11);
}
API error_t cudaDeviceSynchronize(void) { return DO("device_wait"); }
ALSO(cudaThreadSynchronize, cudaDeviceSynchronize);
API error_t cudaDeviceReset(void) { return DO("device_reset"); }
ALSO(cudaThreadExit, cudaDeviceReset);
API error_t cudaDeviceSetCacheConfig(int config) {
    (void)config;
    return 0;
}
ALSO(cudaThreadSetCacheConfig, cudaDeviceSetCacheConfig);
API error_t cudaDeviceSetSharedMemConfig(int config) {
    (void)config;
    return 0;
}
API error_t cudaDeviceGetCacheConfig(int *config) {
    *config = 0;
    return 0;
}
API error_t cudaDeviceSetLimit(int limit, size_t value) { return DO("limit_set", limit, (int64_t)value); }
ALSO(cudaThreadSetLimit, cudaDeviceSetLimit);
API error_t cudaDeviceGetLimit(size_t *value, int limit) {
    struct answer answer = ASK("limit", limit);
    *value = (size_t)answer.value[0];
    return say(answer);
}
API error_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0, *greatest = -5;
    return 0;
}
API error_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    struct answer answer = ASK("peer_possible", device, peer);
    *can = (int)answer.value[0];
    return say(answer);
}
API error_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    return flags ? noted(ERROR_INVALID) : DO("peer_enable", peer, 0);
}
API error_t cudaDeviceDisablePeerAccess(int peer) { return DO("peer_enable", peer, 1); }
API error_t cudaDeviceGetP2PAttribute(int *value, int attribute, int device, int peer) {
    enum { RANK = 1 };
    struct answer answer = ASK("peer_possible", device, peer);
    *value = attribute == RANK ? 0 : (int)answer.value[0];
    return say(answer);
}
API error_t cudaDeviceGetPCIBusId(char *text, int bytes, int device) {
    snprintf(text, (size_t)bytes, "0000:%02x:00.0", 1 + device);
    return DO("device_set", device);
}
API error_t cudaDeviceGetByPCIBusId(int *device, const char *text) {
    unsigned domain = 0, bus;
    if (sscanf(text, "%x:%x:", &domain, &bus) != 2 || !bus)
        return noted(ERROR_INVALID);
    *device = (int)bus - 1;
    return DO("device_set", *device);
}
API error_t cudaStreamGetDevice(stream_t stream, int *device) {
    struct answer answer = ASK("stream_flags", N(stream));
    *device = (int)answer.value[2];
    return say(answer);
}
ALSO(cudaStreamGetDevice_ptsz, cudaStreamGetDevice);
API error_t cudaRuntimeGetVersion(int *version) {
    struct answer answer = ASK("driver_version");
    *version = (int)answer.value[0];
    return say(answer);
}
API error_t cudaDriverGetVersion(int *version) {
    struct answer answer = ASK("driver_version");
    *version = (int)answer.value[0];
    return say(answer);
}
API error_t cudaProfilerStart(void) { return 0; }
API error_t cudaProfilerStop(void) { return 0; }
API error_t cudaCtxResetPersistingL2Cache(void) { return 0; }

API error_t cudaDeviceGetDefaultMemPool(void **pool, int device) {
    if (!pool || !has_device(device))
        return noted(ERROR_NO_SUCH_DEVICE);
    *pool = pools + device;
    return 0;
}
ALSO(cudaDeviceGetMemPool, cudaDeviceGetDefaultMemPool);
struct place {
    int type, device;
};
struct pool_properties {
    int allocation, handles;
    struct place place;
};
API error_t cudaMemPoolCreate(void **pool, const struct pool_properties *properties) {
    if (!pool || !properties || !has_device(properties->place.device))
        return noted(ERROR_INVALID);
    *pool = pools + properties->place.device;
    return 0;
}
struct pool_access {
    struct place place;
    int flags;
};
API error_t cudaMemPoolSetAccess(void *pool, const struct pool_access *access, size_t count) {
    if (!is_pool(pool) || (count && !access))
        return noted(ERROR_INVALID);
    for (size_t n = 0; n < count; n++) {
        struct answer answer = ASK("reached", 0, 0, access[n].place.device, (char *)pool - pools);
        if (answer.status)
            return say(answer);
    }
    return 0;
}
API error_t cudaMemPoolGetAccess(int *flags, void *pool, const struct place *place) {
    if (!is_pool(pool) || !flags || !place)
        return noted(ERROR_INVALID);
    *flags = 3; /* to read and to write */
    return 0;
}
API error_t cudaMemPoolGetAttribute(void *pool, int attribute, void *value) {
    if (!is_pool(pool) || !value)
        return noted(ERROR_INVALID);
    enum { FIRST_OF_64_BITS = 4 };
    memset(value, 0, attribute < FIRST_OF_64_BITS ? sizeof(int) : sizeof(uint64_t));
    return 0;
}
/* Hints about the L2: taken, and told, as they have no effect on the prediction. */
API error_t cudaStreamSetAttribute(stream_t stream, int attribute, const void *value) {
    (void)stream, (void)attribute;
    if (!value)
        return noted(ERROR_INVALID);
    static const char said[] = "cudaStreamSetAttribute, without effect";
    ask_with("unsupported", (int64_t[MOST_NUMBERS]){0}, said, sizeof said - 1, NULL, 0);
    return 0;
}
ALSO(cudaStreamSetAttribute_ptsz, cudaStreamSetAttribute);
API error_t cudaMemPoolDestroy(void *pool) {
    (void)pool;
    return 0;
}
API error_t cudaMemPoolSetAttribute(void *pool, int attribute, void *value) {
    (void)pool, (void)attribute, (void)value;
    return 0;
}
API error_t cudaMemPoolTrimTo(void *pool, size_t bytes) {
    (void)pool, (void)bytes;
    return 0;
}
