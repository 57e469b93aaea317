/* The connection to drywarp: made at the first call, one for each process. */
#define _GNU_SOURCE
#include "wire.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

__attribute__((used)) static const char built_from[] = "drywarp " DRYWARP_DIGEST;
static const char SOCKET_VARIABLE[] = "DRYWARP_RUN_SOCKET";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int link_to = -1, forked, lost;
int device_memory = -1;
__thread int current_device;
char *device_start;

static void leave_to_parent(void) {
    if (link_to >= 0) {
        close(link_to);
        link_to = -1;
        forked = 1;
    }
    pthread_mutex_init(&lock, NULL);
}

static int send_all(struct iovec *part, int parts) {
    while (parts) {
        struct msghdr message = {.msg_iov = part, .msg_iovlen = (size_t)parts};
        ssize_t sent = sendmsg(link_to, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return 0;
        for (; parts && (size_t)sent >= part->iov_len; part++, parts--)
            sent -= (ssize_t)part->iov_len;
        if (parts) {
            part->iov_base = (char *)part->iov_base + sent;
            part->iov_len -= (size_t)sent;
        }
    }
    return 1;
}

static int receive_all(void *into, size_t bytes) {
    char *at = into;
    while (bytes) {
        ssize_t got = recv(link_to, at, bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return 0;
        at += got;
        bytes -= (size_t)got;
    }
    return 1;
}

/* Receive the device's memory: its address, its size, and the descriptor to map there. */
static int map_memory(void) {
    int64_t place[2];
    struct iovec part = {place, sizeof place};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(link_to, &message, MSG_CMSG_CLOEXEC) != sizeof place)
        return 0;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (!header || header->cmsg_type != SCM_RIGHTS)
        return 0;
    memcpy(&device_memory, CMSG_DATA(header), sizeof device_memory);
    void *wanted = device_start = (void *)(intptr_t)place[0];
    int flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    void *got = mmap(wanted, (size_t)place[1], PROT_READ | PROT_WRITE, flags, device_memory, 0);
    if (got != wanted)
        fprintf(stderr, "drywarp: the program uses the addresses from %p on, where device memory has to lie\n", wanted);
    return got == wanted;
}

static int connected(void) {
    if (link_to >= 0)
        return 1;
    const char *path = getenv(SOCKET_VARIABLE);
    if (!path || forked || lost)
        return 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t bytes = strlen(path);
    if (bytes >= sizeof address.sun_path)
        return 0;
    /* The name is in no folder: nothing remains of it, however drywarp ends. */
    memcpy(address.sun_path + 1, path, bytes);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + bytes);
    link_to = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (link_to < 0 || connect(link_to, (struct sockaddr *)&address, size) || !map_memory()) {
        if (link_to >= 0)
            close(link_to);
        link_to = -1;
        lost = 1;
        return 0;
    }
    pthread_atfork(NULL, NULL, leave_to_parent);
    /* Without drywarp, nothing that the program computes would be right. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    return 1;
}

/* Pass on to the program's output what device code printed. */
static int print(uint64_t bytes) {
    char text[4096];
    while (bytes) {
        size_t part = bytes < sizeof text ? bytes : sizeof text;
        if (!receive_all(text, part))
            return 0;
        fwrite(text, 1, part, stdout);
        bytes -= part;
    }
    return 1;
}

static struct answer gave_up(void) {
    int first = !lost;
    lost = 1;
    close(link_to);
    link_to = -1;
    if (first) {
        /* Nobody waits any longer for what the program computes: it shall not stay behind. */
        fprintf(stderr, "drywarp: the connection to drywarp is lost\n");
        kill(getpid(), SIGTERM);
    }
    return (struct answer){.status = ERROR_UNKNOWN};
}

struct answer ask_with(const char *name, const int64_t *numbers, const void *data, size_t bytes, void *out, size_t room) {
    struct request request = {.device = current_device, .thread = (int64_t)pthread_self(), .bytes = data ? bytes : 0};
    struct reply reply;
    struct answer answer = {.status = ERROR_UNKNOWN};
    strncpy(request.name, name, NAME_BYTES - 1);
    memcpy(request.number, numbers, sizeof request.number);
    pthread_mutex_lock(&lock);
    clock_stops();
    if (!connected()) {
        answer.status = forked ? ERROR_INITIALIZATION : lost ? ERROR_UNKNOWN : ERROR_NO_DEVICE;
    } else {
        struct iovec parts[2] = {{&request, sizeof request}, {(void *)data, request.bytes}};
        if (!send_all(parts, request.bytes ? 2 : 1) || !receive_all(&reply, sizeof reply)) {
            answer = gave_up();
        } else {
            size_t wanted = reply.bytes < room ? reply.bytes : room;
            answer.status = (int)reply.status;
            answer.bytes = wanted;
            memcpy(answer.value, reply.value, sizeof answer.value);
            int whole = receive_all(out, wanted);
            for (size_t left = reply.bytes - wanted; whole && left;) {
                char rest[256];
                size_t part = left < sizeof rest ? left : sizeof rest;
                whole = receive_all(rest, part);
                left -= part;
            }
            if (!whole || !print(reply.printed))
                answer = gave_up();
            clock_goes_on(reply.clock);
        }
    }
    pthread_mutex_unlock(&lock);
    return answer;
}

/* A thread begins when it is created, and one that waits for it goes on at the earliest when it has ended. */
API int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*function)(void *), void *data) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real)
        real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
    int status = real(thread, how, function, data);
    if (!status && link_to >= 0)
        ASK("created", (int64_t)*thread);
    return status;
}
API int pthread_join(pthread_t thread, void **result) {
    static int (*real)(pthread_t, void **);
    if (!real)
        real = (int (*)(pthread_t, void **))dlsym(RTLD_NEXT, "pthread_join");
    int status = real(thread, result);
    if (!status && link_to >= 0)
        ASK("joined", (int64_t)thread);
    return status;
}
