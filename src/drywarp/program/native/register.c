/* Host memory that a program registers: its pages become those of device memory, so that kernels reach them. */
#define _GNU_SOURCE
#include "wire.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int error_t;

/* The whole pages around some bytes. What else lies in them moves along unnoticed: the program sees the same content at
   the same addresses. */
static char *pages_around(const void *host, size_t bytes, size_t *size) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)host / page * page;
    *size = ((uintptr_t)host + bytes + page - 1) / page * page - first;
    return (char *)first;
}

API error_t cudaHostRegister(void *host, size_t bytes, unsigned flags) {
    (void)flags;
    if (!host || !bytes)
        return noted(ERROR_INVALID);
    size_t size;
    char *first = pages_around(host, bytes, &size);
    struct answer answer = ASK("host_register", N(first), (int64_t)size, N(host));
    if (answer.status)
        return noted(answer.status);
    char *there = (char *)(intptr_t)answer.value[0];
    memcpy(there, first, size);
    int flags_of_map = MAP_SHARED | MAP_FIXED;
    if (mmap(first, size, PROT_READ | PROT_WRITE, flags_of_map, device_memory, there - device_start) == MAP_FAILED) {
        ASK("host_unregister", N(host));
        return noted(ERROR_INVALID);
    }
    return 0;
}

ALSO(cuMemHostRegister_v2, cudaHostRegister);
ALSO(cuMemHostRegister, cudaHostRegister);

API error_t cudaHostUnregister(void *host) {
    struct answer answer = ASK("registered", N(host));
    if (answer.status)
        return noted(answer.status);
    char *first = (char *)(intptr_t)answer.value[0], *there = (char *)(intptr_t)answer.value[1];
    size_t size = (size_t)answer.value[2];
    /* Private memory again, with what it holds by now: in one step for whoever looks at it meanwhile. */
    char *own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (own == MAP_FAILED)
        return noted(ERROR_INVALID);
    memcpy(own, there, size);
    if (mremap(own, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, first) == MAP_FAILED)
        return noted(ERROR_INVALID);
    return noted(ASK("host_unregister", N(host)).status);
}
ALSO(cuMemHostUnregister, cudaHostUnregister);
