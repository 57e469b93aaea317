/* The functions of the CUDA driver API that libraries call (Numba, CuPy, PyCUDA, Triton, cuda-python).

   Functions whose arguments have changed carry the newest version's name, and the first one's beside it; programs that
   ask by name (cuGetProcAddress) get the newest. A device has one context. */
#define _GNU_SOURCE
#include "wire.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int result_t;
typedef uint64_t pointer_t;

enum { NOT_FOUND = 500, INVALID_IMAGE = 200, INVALID_HANDLE = 400 };

/* The runtime has codes that the driver does not have. */
static result_t as_result(int status) {
    switch (status) {
    case 9: return ERROR_INVALID;
    case 13: return NOT_FOUND;
    case 98: return INVALID_HANDLE;
    default: return status;
    }
}

#define RESULT(name, ...) as_result(ASK(name, __VA_ARGS__).status)

enum { MOST_DEVICES = 16, MOST_CONTEXTS = 16 };
/* A context of a device is its primary one: an address here. Each thread has a stack of them. */
static char contexts[MOST_DEVICES];
static __thread void *stack[MOST_CONTEXTS];
static __thread int stacked;

static result_t has(int device) { return RESULT("device_set", device); }

static void *current(void) { return stacked ? stack[stacked - 1] : NULL; }

/* The top of the stack has changed. */
static result_t use(void) {
    if (stacked)
        current_device = (int)((char *)stack[stacked - 1] - contexts);
    return 0;
}
static int is_context(const void *given) { return (const char *)given >= contexts && (const char *)given < contexts + MOST_DEVICES; }

/* Device and context -------------------------------------------------------------------------------------------- */

API result_t cuInit(unsigned flags) {
    (void)flags;
    return RESULT("devices");
}
API result_t cuDriverGetVersion(int *version) {
    struct answer answer = ASK("driver_version");
    *version = (int)answer.value[0];
    return as_result(answer.status);
}
API result_t cuDeviceGetCount(int *count) {
    struct answer answer = ASK("devices");
    *count = (int)answer.value[0];
    return as_result(answer.status);
}
API result_t cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return has(ordinal);
}
API result_t cuDeviceGetAttribute(int *value, int attribute, int device) {
    struct answer answer = ASK("attribute", attribute, device);
    *value = (int)answer.value[0];
    return as_result(answer.status);
}
API result_t cuDeviceGetName(char *name, int bytes, int device) {
    char properties[256];
    int64_t numbers[MOST_NUMBERS] = {device, 12};
    struct answer answer = ask_with("properties", numbers, NULL, 0, properties, sizeof properties);
    if (!answer.status)
        snprintf(name, (size_t)bytes, "%s", properties);
    return as_result(answer.status);
}
API result_t cuDeviceGetUuid_v2(char *uuid, int device) {
    memset(uuid, 0, 16);
    memcpy(uuid, "drywarp", 7);
    uuid[15] = (char)device;
    return has(device);
}
ALSO(cuDeviceGetUuid, cuDeviceGetUuid_v2);
API result_t cuDeviceTotalMem_v2(size_t *bytes, int device) {
    (void)device;
    struct answer answer = ASK("memory_info");
    *bytes = (size_t)answer.value[1];
    return as_result(answer.status);
}
ALSO(cuDeviceTotalMem, cuDeviceTotalMem_v2);
API result_t cuDeviceComputeCapability(int *major, int *minor, int device) {
    result_t status = cuDeviceGetAttribute(major, 75, device);
    return status ? status : cuDeviceGetAttribute(minor, 76, device);
}
API result_t cuDeviceGetPCIBusId(char *text, int bytes, int device) {
    snprintf(text, (size_t)bytes, "0000:%02x:00.0", 1 + device);
    return has(device);
}
API result_t cuDeviceCanAccessPeer(int *can, int device, int peer) {
    struct answer answer = ASK("peer_possible", device, peer);
    *can = (int)answer.value[0];
    return as_result(answer.status);
}

API result_t cuDevicePrimaryCtxRetain(void **made, int device) {
    result_t status = has(device);
    if (!status)
        *made = contexts + device;
    return status;
}
API result_t cuDevicePrimaryCtxRelease_v2(int device) { return has(device); }
ALSO(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);
API result_t cuDevicePrimaryCtxReset_v2(int device) { return has(device); }
ALSO(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2);
API result_t cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
    (void)flags;
    return has(device);
}
ALSO(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2);
API result_t cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    *flags = 0, *active = 1;
    return has(device);
}
API result_t cuCtxPushCurrent_v2(void *given) {
    if (!is_context(given) || stacked == MOST_CONTEXTS)
        return ERROR_INVALID;
    stack[stacked++] = given;
    return use();
}
ALSO(cuCtxPushCurrent, cuCtxPushCurrent_v2);
API result_t cuCtxPopCurrent_v2(void **found) {
    if (found)
        *found = current();
    if (stacked)
        stacked--;
    return use();
}
ALSO(cuCtxPopCurrent, cuCtxPopCurrent_v2);
API result_t cuCtxCreate_v2(void **made, unsigned flags, int device) {
    (void)flags;
    result_t status = has(device);
    return status ? status : cuCtxPushCurrent_v2(*made = contexts + device);
}
ALSO(cuCtxCreate, cuCtxCreate_v2);
API result_t cuCtxCreate_v3(void **made, void *parameters, int count, unsigned flags, int device) {
    (void)parameters, (void)count;
    return cuCtxCreate_v2(made, flags, device);
}
API result_t cuCtxCreate_v4(void **made, void *parameters, unsigned flags, int device) {
    (void)parameters;
    return cuCtxCreate_v2(made, flags, device);
}
API result_t cuCtxDestroy_v2(void *given) {
    if (stacked && current() == given)
        stacked--;
    return use();
}
ALSO(cuCtxDestroy, cuCtxDestroy_v2);
API result_t cuCtxSetCurrent(void *given) {
    if (given && !is_context(given))
        return ERROR_INVALID;
    stacked -= stacked > 0;
    return given ? cuCtxPushCurrent_v2(given) : use();
}
API result_t cuCtxGetCurrent(void **found) {
    *found = current();
    return 0;
}
API result_t cuCtxGetDevice(int *device) {
    *device = current_device;
    return 0;
}
API result_t cuCtxEnablePeerAccess(void *peer, unsigned flags) {
    return is_context(peer) && !flags ? RESULT("peer_enable", (int)((char *)peer - contexts), 0) : ERROR_INVALID;
}
API result_t cuCtxDisablePeerAccess(void *peer) {
    return is_context(peer) ? RESULT("peer_enable", (int)((char *)peer - contexts), 1) : ERROR_INVALID;
}
API result_t cuCtxGetFlags(unsigned *flags) {
    *flags = 0;
    return 0;
}
API result_t cuCtxGetApiVersion(void *given, unsigned *version) {
    (void)given;
    *version = 3020;
    return 0;
}
API result_t cuCtxSynchronize(void) { return RESULT("device_wait"); }
API result_t cuCtxSetLimit(int limit, size_t value) { return RESULT("limit_set", limit, (int64_t)value); }
API result_t cuCtxGetLimit(size_t *value, int limit) {
    struct answer answer = ASK("limit", limit);
    *value = (size_t)answer.value[0];
    return as_result(answer.status);
}
API result_t cuCtxSetCacheConfig(int config) {
    (void)config;
    return 0;
}
API result_t cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0, *greatest = -5;
    return 0;
}

API result_t cuGetErrorName(result_t code, const char **text) {
    *text = text_of(code, 0);
    return 0;
}
API result_t cuGetErrorString(result_t code, const char **text) {
    *text = text_of(code, 1);
    return 0;
}
API result_t cuProfilerStart(void) { return 0; }
API result_t cuProfilerStop(void) { return 0; }

API result_t cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status) {
    (void)version, (void)flags;
    static const char *const newest[] = {"_v3", "_v2", ""};
    char versioned[128];
    Dl_info here;
    void *self = dladdr((void *)cuGetProcAddress_v2, &here) ? dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    *found = NULL;
    for (int n = 0; self && !*found && n < 3; n++) {
        /* cuCtxCreate's third version takes other arguments than programs that ask for less expect. */
        if (n == 0 && !strcmp(name, "cuCtxCreate"))
            continue;
        snprintf(versioned, sizeof versioned, "%s%s", name, newest[n]);
        *found = dlsym(self, versioned);
    }
    if (self)
        dlclose(self);
    if (status)
        *status = *found ? 0 : 1;
    return *found ? 0 : NOT_FOUND;
}
API result_t cuGetProcAddress(const char *name, void **found, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, found, version, flags, NULL);
}

/* Tables of the driver that nobody documents are not imitated; NVRTC asks for one, and does without. */
API result_t cuGetExportTable(const void **table, const void *id) {
    (void)id;
    ASK("table");
    *table = NULL;
    return NOT_FOUND;
}

/* Code ---------------------------------------------------------------------------------------------------------- */

struct code {
    int64_t number;
};
struct kernel {
    struct code *code;
};

/* Bytes of an image that a program gives by address only: PTX text, a CUBIN, or a fat binary. */
static size_t bytes_of(const char *image) {
    uint32_t magic;
    memcpy(&magic, image, sizeof magic);
    if (magic == 0xba55ed50) {
        uint16_t head;
        uint64_t content;
        memcpy(&head, image + 6, sizeof head);
        memcpy(&content, image + 8, sizeof content);
        return head + content;
    }
    if (memcmp(image, ELFMAG, SELFMAG))
        return strlen(image);
    const Elf64_Ehdr *elf = (const void *)image;
    size_t end = elf->e_shoff + (size_t)elf->e_shnum * elf->e_shentsize;
    size_t segments = elf->e_phoff + (size_t)elf->e_phnum * elf->e_phentsize;
    const Elf64_Shdr *section = (const void *)(image + elf->e_shoff);
    for (int n = 0; n < elf->e_shnum; n++)
        if (section[n].sh_type != SHT_NOBITS && section[n].sh_offset + section[n].sh_size > end)
            end = section[n].sh_offset + section[n].sh_size;
    return end > segments ? end : segments;
}

static result_t load(struct code **made, const char *image, size_t bytes) {
    uint32_t magic;
    memcpy(&magic, image, sizeof magic);
    if (magic == 0x466243b1) { /* a wrapper, as compilers put round a fat binary */
        memcpy(&image, image + 8, sizeof image);
        bytes = bytes_of(image);
    }
    int64_t numbers[MOST_NUMBERS] = {1};
    struct answer answer = ask_with("register", numbers, image, bytes, NULL, 0);
    if (answer.status)
        return as_result(answer.status);
    *made = malloc(sizeof **made);
    (*made)->number = answer.value[0];
    return 0;
}

API result_t cuModuleLoadData(struct code **made, const void *image) { return load(made, image, bytes_of(image)); }
ALSO(cuModuleLoadFatBinary, cuModuleLoadData);
API result_t cuModuleLoadDataEx(struct code **made, const void *image, unsigned count, int *options, void **values) {
    (void)count, (void)options, (void)values;
    return cuModuleLoadData(made, image);
}
API result_t cuLibraryLoadData(struct code **made, const void *image, int *jit, void **jit_values, unsigned jit_count,
                               int *options, void **values, unsigned count) {
    (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    return cuModuleLoadData(made, image);
}
API result_t cuModuleLoad(struct code **made, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return 301;
    fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    rewind(file);
    char *image = calloc(1, (size_t)bytes + 1);
    size_t got = fread(image, 1, (size_t)bytes, file);
    fclose(file);
    result_t status = got == (size_t)bytes && bytes > 3 ? load(made, image, got) : INVALID_IMAGE;
    free(image);
    return status;
}
API result_t cuModuleUnload(struct code *code) {
    (void)code;
    return 0;
}
ALSO(cuLibraryUnload, cuModuleUnload);
API result_t cuModuleGetLoadingMode(int *mode) {
    *mode = 1;
    return 0;
}

API result_t cuModuleGetFunction(struct kernel **made, struct code *code, const char *name) {
    struct kernel *kernel = malloc(sizeof *kernel);
    kernel->code = code;
    ask_with("function", (int64_t[MOST_NUMBERS]){code->number, N(kernel)}, name, strlen(name), NULL, 0);
    int status = ASK("layout", N(kernel)).status;
    *made = kernel;
    return status == 209 ? NOT_FOUND : as_result(status);
}
ALSO(cuLibraryGetKernel, cuModuleGetFunction);
API result_t cuKernelGetFunction(struct kernel **made, struct kernel *kernel) {
    *made = kernel;
    return 0;
}
API result_t cuLibraryGetModule(struct code **made, struct code *code) {
    *made = code;
    return 0;
}
API result_t cuFuncGetModule(struct code **made, struct kernel *kernel) {
    *made = kernel->code;
    return 0;
}
API result_t cuFuncLoad(struct kernel *kernel) {
    (void)kernel;
    return 0;
}
API result_t cuModuleGetGlobal_v2(pointer_t *pointer, size_t *bytes, struct code *code, const char *name) {
    char *key = malloc(1);
    int64_t numbers[MOST_NUMBERS] = {code->number, N(key)};
    ask_with("variable", numbers, name, strlen(name), NULL, 0);
    struct answer answer = ASK("symbol", N(key));
    if (pointer)
        *pointer = (pointer_t)answer.value[0];
    if (bytes)
        *bytes = (size_t)answer.value[1];
    return as_result(answer.status);
}
ALSO(cuModuleGetGlobal, cuModuleGetGlobal_v2);

API result_t cuFuncGetAttribute(int *value, int attribute, struct kernel *kernel) {
    char content[52] = {0};
    struct answer answer = ask_with("function_attributes", (int64_t[MOST_NUMBERS]){N(kernel)}, NULL, 0, content, 52);
    /* Places in the runtime's structure: threads, shared, constant and local bytes, registers, versions, ... */
    static const int place[] = {24, 0, 8, 16, 28, 32, 36, 40, 44, 48};
    if (attribute < 0 || attribute > 9) {
        *value = 0;
        return 0;
    }
    memcpy(value, content + place[attribute], sizeof *value);
    return as_result(answer.status);
}
API result_t cuFuncSetAttribute(struct kernel *kernel, int attribute, int value) {
    return RESULT("function_set", N(kernel), attribute, value);
}
API result_t cuKernelGetAttribute(int *value, int attribute, struct kernel *kernel, int device) {
    (void)device;
    return cuFuncGetAttribute(value, attribute, kernel);
}
API result_t cuKernelSetAttribute(int attribute, int value, struct kernel *kernel, int device) {
    (void)device;
    return cuFuncSetAttribute(kernel, attribute, value);
}
API result_t cuFuncSetCacheConfig(struct kernel *kernel, int config) {
    (void)kernel, (void)config;
    return 0;
}

API result_t cuLaunchKernel(struct kernel *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared, stream_t stream, void **arguments,
                            void **extra) {
    dim3 grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
    return as_result(launch(kernel, grid, block, arguments, packed_in(extra), shared, stream, 0, ALONE));
}
API result_t cuLaunchCooperativeKernel(struct kernel *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                       stream_t stream, void **arguments) {
    dim3 grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
    return as_result(launch(kernel, grid, block, arguments, NULL, shared, stream, 1, ALONE));
}
struct config {
    dim3 grid, block;
    unsigned shared;
    stream_t stream;
    struct launch_attribute *attributes;
    unsigned count;
};
API result_t cuLaunchKernelEx(const struct config *config, struct kernel *kernel, void **arguments, void **extra) {
    dim3 cluster = ALONE;
    int cooperative = 0;
    read_attributes(config->attributes, config->count, &cooperative, &cluster);
    return as_result(launch(kernel, config->grid, config->block, arguments, packed_in(extra), config->shared,
                            config->stream, cooperative, cluster));
}

API result_t cuOccupancyMaxActiveClusters(int *clusters, struct kernel *kernel, const struct config *config) {
    dim3 cluster = ALONE, block = config->block;
    int ignored = 0;
    read_attributes(config->attributes, config->count, &ignored, &cluster);
    int64_t threads = (int64_t)block.x * block.y * block.z, blocks = (int64_t)cluster.x * cluster.y * cluster.z;
    struct answer answer = ASK("clusters", N(kernel), threads, (int64_t)config->shared, blocks);
    *clusters = (int)answer.value[0];
    return as_result(answer.status);
}

API result_t cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, struct kernel *kernel, int threads,
                                                                  size_t shared, unsigned flags) {
    struct answer answer = ASK("occupancy", N(kernel), threads, (int64_t)shared, flags);
    *blocks = (int)answer.value[0];
    return as_result(answer.status);
}
API result_t cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, struct kernel *kernel, int threads, size_t shared) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, threads, shared, 0);
}

/* The largest of the block sizes that fill an SM best, a multiple of a warp. */
API result_t cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, struct kernel *kernel,
                                                       size_t (*shared_for)(int), size_t shared, int limit,
                                                       unsigned flags) {
    enum { WARP = 32, MOST_THREADS = 1, SMS = 16 };
    int most = (int)ASK("attribute", MOST_THREADS).value[0], sms = (int)ASK("attribute", SMS).value[0], filled = 0;
    if (limit > 0 && limit < most)
        most = limit;
    *grid = *block = 0;
    for (int threads = most; threads > 0; threads = (threads - 1) / WARP * WARP) {
        int blocks;
        size_t dynamic = shared_for ? shared_for(threads) : shared;
        result_t status = cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, kernel, threads, dynamic, flags);
        if (status)
            return status;
        if (blocks * threads > filled)
            filled = blocks * threads, *block = threads, *grid = blocks * sms;
    }
    return filled ? 0 : as_result(ERROR_INVALID);
}
API result_t cuOccupancyMaxPotentialBlockSize(int *grid, int *block, struct kernel *kernel, size_t (*shared_for)(int),
                                              size_t shared, int limit) {
    return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, kernel, shared_for, shared, limit, 0);
}

/* Memory -------------------------------------------------------------------------------------------------------- */

API result_t cuMemAlloc_v2(pointer_t *made, size_t bytes) { return as_result(allocate((void **)made, bytes, DEVICE, 0)); }
ALSO(cuMemAlloc, cuMemAlloc_v2);
API result_t cuMemAllocManaged(pointer_t *made, size_t bytes, unsigned flags) {
    (void)flags;
    return as_result(allocate((void **)made, bytes, MANAGED, 0));
}
API result_t cuMemAllocAsync(pointer_t *made, size_t bytes, stream_t stream) {
    return as_result(allocate((void **)made, bytes, DEVICE, stream));
}
API result_t cuMemAllocHost_v2(void **made, size_t bytes) { return as_result(allocate(made, bytes, PINNED, 0)); }
ALSO(cuMemAllocHost, cuMemAllocHost_v2);
API result_t cuMemHostAlloc(void **made, size_t bytes, unsigned flags) {
    (void)flags;
    return as_result(allocate(made, bytes, PINNED, 0));
}
API result_t cuMemAllocPitch_v2(pointer_t *made, size_t *pitch, size_t width, size_t height, unsigned element) {
    (void)element;
    *pitch = (width + 511) / 512 * 512;
    return as_result(allocate((void **)made, *pitch * height, DEVICE, 0));
}
ALSO(cuMemAllocPitch, cuMemAllocPitch_v2);
API result_t cuMemFree_v2(pointer_t pointer) { return RESULT("free", (int64_t)pointer, DEVICE); }
ALSO(cuMemFree, cuMemFree_v2);
API result_t cuMemFreeAsync(pointer_t pointer, stream_t stream) { return RESULT("free", (int64_t)pointer, DEVICE, N(stream)); }
API result_t cuMemFreeHost(void *pointer) { return RESULT("free", N(pointer), PINNED); }
API result_t cuMemHostGetDevicePointer_v2(pointer_t *device, void *host, unsigned flags) {
    (void)flags;
    *device = (pointer_t)(intptr_t)host;
    return RESULT("device_pointer", N(host));
}
ALSO(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2);
API result_t cuMemGetInfo_v2(size_t *left, size_t *total) {
    struct answer answer = ASK("memory_info");
    *left = (size_t)answer.value[0], *total = (size_t)answer.value[1];
    return as_result(answer.status);
}
ALSO(cuMemGetInfo, cuMemGetInfo_v2);
API result_t cuMemGetAddressRange_v2(pointer_t *base, size_t *bytes, pointer_t pointer) {
    struct answer answer = ASK("pointer", (int64_t)pointer);
    if (base)
        *base = (pointer_t)answer.value[1];
    if (bytes)
        *bytes = (size_t)answer.value[2];
    return answer.status ? as_result(answer.status) : answer.value[0] ? 0 : NOT_FOUND;
}
ALSO(cuMemGetAddressRange, cuMemGetAddressRange_v2);

static result_t attribute_of(void *value, int attribute, const struct answer *found, pointer_t pointer) {
    enum { IN_CONTEXT = 1, KIND = 2, ON_DEVICE_AT = 3, ON_HOST_AT = 4, MANAGED_TOO = 8, ORDINAL = 9, START = 11, BYTES = 12 };
    int64_t kind = found->value[0]; /* 1 host, 2 device, 3 managed */
    if (!kind)
        return ERROR_INVALID;
    switch (attribute) {
    case IN_CONTEXT: *(void **)value = contexts + found->value[3]; break;
    case KIND: *(unsigned *)value = kind == 1 ? 1 : 2; break;
    case ON_DEVICE_AT: *(pointer_t *)value = pointer; break;
    case ON_HOST_AT: *(pointer_t *)value = kind == 2 ? 0 : pointer; break;
    case MANAGED_TOO: *(int *)value = kind == 3; break;
    case ORDINAL: *(int *)value = (int)found->value[3]; break;
    case START: *(pointer_t *)value = (pointer_t)found->value[1]; break;
    case BYTES: *(size_t *)value = (size_t)found->value[2]; break;
    default: return ERROR_UNSUPPORTED;
    }
    return 0;
}
API result_t cuPointerGetAttribute(void *value, int attribute, pointer_t pointer) {
    struct answer found = ASK("pointer", (int64_t)pointer);
    return found.status ? as_result(found.status) : attribute_of(value, attribute, &found, pointer);
}
API result_t cuPointerGetAttributes(unsigned count, int *attributes, void **values, pointer_t pointer) {
    struct answer found = ASK("pointer", (int64_t)pointer);
    for (unsigned n = 0; n < count; n++)
        attribute_of(values[n], attributes[n], &found, pointer);
    return as_result(found.status);
}

static result_t moved(pointer_t to, pointer_t from, size_t bytes, int kind, stream_t stream, int async) {
    void *target = (void *)(intptr_t)to;
    return as_result(copy(target, bytes, (void *)(intptr_t)from, bytes, bytes, 1, kind, stream, async));
}
#define COPY(name, kind)                                                                                              \
    API result_t name##_v2(pointer_t to, pointer_t from, size_t bytes) { return moved(to, from, bytes, kind, 0, 0); }  \
    ALSO(name, name##_v2);                                                                                            \
    API result_t name##Async_v2(pointer_t to, pointer_t from, size_t bytes, stream_t stream) {                        \
        return moved(to, from, bytes, kind, stream, 1);                                                                \
    }                                                                                                                 \
    ALSO(name##Async, name##Async_v2)
COPY(cuMemcpyHtoD, TO_DEVICE);
COPY(cuMemcpyDtoH, TO_HOST);
COPY(cuMemcpyDtoD, ON_DEVICE);
API result_t cuMemcpy(pointer_t to, pointer_t from, size_t bytes) { return moved(to, from, bytes, WHEREVER, 0, 0); }
API result_t cuMemcpyAsync(pointer_t to, pointer_t from, size_t bytes, stream_t stream) {
    return moved(to, from, bytes, WHEREVER, stream, 1);
}

static result_t fill(pointer_t at, int64_t value, int64_t element, size_t count, stream_t stream, int async) {
    int64_t bytes = (int64_t)count * element;
    return RESULT("fill", (int64_t)at, value, bytes, 1, bytes, N(stream), async, element);
}
#define FILL(name, type)                                                                                              \
    API result_t name##_v2(pointer_t at, type value, size_t count) {                                                  \
        return fill(at, value, sizeof(type), count, 0, 0);                                                            \
    }                                                                                                                 \
    ALSO(name, name##_v2);                                                                                            \
    API result_t name##Async(pointer_t at, type value, size_t count, stream_t stream) {                               \
        return fill(at, value, sizeof(type), count, stream, 1);                                                       \
    }                                                                                                                 \
    ALSO(name##Async_v2, name##Async)
FILL(cuMemsetD8, unsigned char);
FILL(cuMemsetD16, unsigned short);
FILL(cuMemsetD32, unsigned);

/* Streams and events -------------------------------------------------------------------------------------------- */

API result_t cuStreamCreateWithPriority(stream_t *stream, unsigned flags, int priority) {
    struct answer answer = ASK("stream_create", flags, priority);
    *stream = (stream_t)(intptr_t)answer.value[0];
    return as_result(answer.status);
}
API result_t cuStreamCreate(stream_t *stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }
API result_t cuStreamDestroy_v2(stream_t stream) { return RESULT("stream_destroy", N(stream)); }
ALSO(cuStreamDestroy, cuStreamDestroy_v2);
API result_t cuStreamSynchronize(stream_t stream) { return RESULT("stream_wait", N(stream)); }
API result_t cuStreamQuery(stream_t stream) { return RESULT("stream_wait", N(stream)); }
API result_t cuStreamWaitEvent(stream_t stream, void *event, unsigned flags) {
    return RESULT("stream_wait_event", N(stream), N(event), flags);
}
API result_t cuStreamGetCtx(stream_t stream, void **found) {
    struct answer answer = ASK("stream_flags", N(stream));
    *found = contexts + answer.value[2];
    return as_result(answer.status);
}
ALSO(cuStreamGetCtx_v2, cuStreamGetCtx);
API result_t cuStreamIsCapturing(stream_t stream, int *status) {
    struct answer answer = ASK("capture_state", N(stream));
    *status = (int)answer.value[0];
    return as_result(answer.status);
}
API result_t cuLaunchHostFunc(stream_t stream, void (*function)(void *), void *data) {
    struct answer answer = ASK("host_function", N(stream), N(function), N(data));
    if (!answer.status && answer.value[0])
        function(data);
    return as_result(answer.status);
}
API result_t cuEventCreate(void **event, unsigned flags) {
    struct answer answer = ASK("event_create", flags);
    *event = (void *)(intptr_t)answer.value[0];
    return as_result(answer.status);
}
API result_t cuEventDestroy_v2(void *event) { return RESULT("event_destroy", N(event)); }
ALSO(cuEventDestroy, cuEventDestroy_v2);
API result_t cuEventRecord(void *event, stream_t stream) { return RESULT("event_record", N(event), N(stream)); }
API result_t cuEventRecordWithFlags(void *event, stream_t stream, unsigned flags) {
    (void)flags;
    return cuEventRecord(event, stream);
}
API result_t cuEventSynchronize(void *event) { return RESULT("event_wait", N(event)); }
API result_t cuEventQuery(void *event) { return RESULT("event_wait", N(event)); }
API result_t cuEventElapsedTime_v2(float *milliseconds, void *from, void *to) {
    struct answer answer = ASK("event_elapsed", N(from), N(to));
    if (!answer.status)
        *milliseconds = (float)((double)answer.value[0] * 1e-6);
    return as_result(answer.status);
}
ALSO(cuEventElapsedTime, cuEventElapsedTime_v2);
