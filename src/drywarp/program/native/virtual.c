/* Virtual memory management (cuMem…): addresses are reserved, and memory is mapped to them.

   Here a reservation is an allocation, and what is mapped into it has its content there. Memory that is unmapped keeps
   its content for the next place; at two places at once it cannot be. */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

typedef int result_t;
typedef uint64_t pointer_t;

enum { GRANULARITY = 2 << 20, READ_WRITE = 3, OUT_OF_MEMORY = 2 };

struct properties {
    int type, handles, place, device;
    void *of_windows;
    unsigned char compression, remote_access;
    unsigned short usage;
    unsigned char reserved[4];
};

struct memory {
    size_t size;
    struct properties properties;
    char *kept; /* its content while it is mapped nowhere */
    int released;
};

/* What is mapped where. */
static struct mapped {
    char *at;
    struct memory *memory;
    struct mapped *next;
} *maps;

static void forget(struct memory *memory) {
    free(memory->kept);
    free(memory);
}

API result_t cuMemGetAllocationGranularity(size_t *bytes, const void *properties, int option) {
    (void)properties, (void)option;
    if (!bytes)
        return ERROR_INVALID;
    *bytes = GRANULARITY;
    return 0;
}

API result_t cuMemAddressReserve(pointer_t *at, size_t size, size_t alignment, pointer_t wanted, uint64_t flags) {
    (void)wanted;
    if (!at || !size || size % GRANULARITY || flags || alignment & (alignment - 1))
        return ERROR_INVALID;
    struct answer answer = ASK("reserve", (int64_t)size, (int64_t)(alignment > GRANULARITY ? alignment : GRANULARITY));
    *at = (pointer_t)answer.value[0];
    return answer.status;
}

API result_t cuMemAddressFree(pointer_t at, size_t size) {
    for (struct mapped *one = maps; one; one = one->next)
        if (one->at >= (char *)at && one->at < (char *)at + size)
            return ERROR_INVALID;
    return ASK("free", (int64_t)at).status;
}

API result_t cuMemCreate(uint64_t *handle, size_t size, const struct properties *properties, uint64_t flags) {
    if (!handle || !properties || !size || size % GRANULARITY || flags)
        return ERROR_INVALID;
    struct memory *made = calloc(1, sizeof *made);
    if (!made)
        return OUT_OF_MEMORY;
    made->size = size;
    made->properties = *properties;
    made->properties.compression = 0; /* asked for, and not granted */
    *handle = (uint64_t)(uintptr_t)made;
    return 0;
}

API result_t cuMemGetAllocationPropertiesFromHandle(struct properties *properties, uint64_t handle) {
    if (!properties || !handle)
        return ERROR_INVALID;
    *properties = ((struct memory *)(uintptr_t)handle)->properties;
    return 0;
}

API result_t cuMemMap(pointer_t at, size_t size, size_t offset, uint64_t handle, uint64_t flags) {
    struct memory *memory = (struct memory *)(uintptr_t)handle;
    if (!memory || offset || flags || size != memory->size || at % GRANULARITY)
        return ERROR_INVALID;
    for (struct mapped *one = maps; one; one = one->next) {
        if (one->memory == memory)
            return unsupported("cuMemMap of memory that is mapped already");
        if (one->at < (char *)at + size && (char *)at < one->at + one->memory->size)
            return ERROR_INVALID;
    }
    struct answer answer = ASK("mapped", (int64_t)at, (int64_t)size);
    if (answer.status)
        return answer.status;
    struct mapped *made = malloc(sizeof *made);
    if (!made)
        return OUT_OF_MEMORY;
    *made = (struct mapped){(char *)at, memory, maps};
    maps = made;
    if (memory->kept)
        memcpy((char *)at, memory->kept, size);
    free(memory->kept);
    memory->kept = NULL;
    return 0;
}

API result_t cuMemUnmap(pointer_t at, size_t size) {
    result_t status = ERROR_INVALID;
    struct mapped **place = &maps;
    while (*place) {
        struct mapped *one = *place;
        if (one->at < (char *)at || one->at + one->memory->size > (char *)at + size) {
            place = &one->next;
            continue;
        }
        struct answer answer = ASK("unmapped", N(one->at)); /* waits for all that is computed there */
        if (answer.status)
            return answer.status;
        if (one->memory->released)
            forget(one->memory);
        else if ((one->memory->kept = malloc(one->memory->size)))
            memcpy(one->memory->kept, one->at, one->memory->size);
        *place = one->next;
        free(one);
        status = 0;
    }
    return status;
}

API result_t cuMemRelease(uint64_t handle) {
    struct memory *memory = (struct memory *)(uintptr_t)handle;
    if (!memory)
        return ERROR_INVALID;
    memory->released = 1;
    for (struct mapped *one = maps; one; one = one->next)
        if (one->memory == memory)
            return 0;
    forget(memory);
    return 0;
}

/* Every device reaches what is mapped: access is not told apart. */
API result_t cuMemSetAccess(pointer_t at, size_t size, const void *access, size_t count) {
    const struct {
        int type, device, flags;
    } *one = access;
    for (size_t n = 0; n < count; n++) {
        struct answer answer = ASK("reached", (int64_t)at, (int64_t)size, one[n].device);
        if (answer.status)
            return answer.status;
    }
    return 0;
}

API result_t cuMemGetAccess(uint64_t *flags, const void *location, pointer_t at) {
    (void)location, (void)at;
    *flags = READ_WRITE;
    return 0;
}
