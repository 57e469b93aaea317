/* Graphs: drywarp keeps what a stream captures, or what a program adds node by node, as a list of steps; copies run here.

   A graph that is built by hand is a stream that is captured for good, its handle being the stream's: a node is what that
   stream would do, in the order in which nodes are added. So a node stands behind all that it depends on. */
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>

typedef int error_t;

#define DO(name, ...) noted(ASK(name, __VA_ARGS__).status)

/* A node is the first of its steps; `next` holds them together. */
struct node {
    void *graph;
    int64_t step;
    int type;
};

enum { KERNEL = 0, COPY = 1, FILL = 2, HOST = 3, CHILD = 4, EMPTY = 5, ALLOCATES = 10, FREES = 11 };

static int64_t steps_of(void *graph) { return ASK("graph_size", N(graph)).value[0]; }

static error_t new_node(struct node **made, void *graph, int64_t step, int type, error_t status) {
    if (status)
        return status;
    struct node *node = malloc(sizeof *node);
    *node = (struct node){graph, step, type};
    *made = node;
    return 0;
}

API error_t cudaStreamBeginCapture(stream_t stream, int mode) { return DO("capture_begin", N(stream), mode); }
ALSO(cudaStreamBeginCapture_ptsz, cudaStreamBeginCapture);
API error_t cudaStreamEndCapture(stream_t stream, void **graph) {
    struct answer answer = ASK("capture_end", N(stream));
    *graph = (void *)(intptr_t)answer.value[0];
    return noted(answer.status);
}
ALSO(cudaStreamEndCapture_ptsz, cudaStreamEndCapture);
API error_t cudaStreamIsCapturing(stream_t stream, int *status) {
    struct answer answer = ASK("capture_state", N(stream));
    *status = (int)answer.value[0];
    return noted(answer.status);
}
ALSO(cudaStreamIsCapturing_ptsz, cudaStreamIsCapturing);
/* What follows `id` is left alone where nothing is captured. The next step has no node that it must name: it stands behind
   all that was captured before. */
API error_t cudaStreamGetCaptureInfo(stream_t stream, int *status, uint64_t *id, void **graph, const void **after,
                                     const void **edges, size_t *count) {
    struct answer answer = ASK("capture_state", N(stream));
    *status = (int)answer.value[0];
    if (answer.status || !*status)
        return noted(answer.status);
    if (id)
        *id = (uint64_t)answer.value[1];
    if (graph)
        *graph = (void *)(intptr_t)answer.value[1];
    if (after)
        *after = NULL;
    if (edges)
        *edges = NULL;
    if (count)
        *count = 0;
    return 0;
}
API error_t cudaStreamGetCaptureInfo_v2(stream_t stream, int *status, uint64_t *id, void **graph, const void **after,
                                        size_t *count) {
    return cudaStreamGetCaptureInfo(stream, status, id, graph, after, NULL, count);
}
ALSO(cudaStreamGetCaptureInfo_ptsz, cudaStreamGetCaptureInfo);
ALSO(cudaStreamGetCaptureInfo_v2_ptsz, cudaStreamGetCaptureInfo_v2);
ALSO(cudaStreamGetCaptureInfo_v3, cudaStreamGetCaptureInfo);
ALSO(cudaStreamGetCaptureInfo_v3_ptsz, cudaStreamGetCaptureInfo);
API error_t cudaThreadExchangeStreamCaptureMode(int *mode) {
    (void)mode;
    return 0;
}

/* Nodes -------------------------------------------------------------------------------------------------------- */

struct kernel_node {
    void *function;
    dim3 grid, block;
    unsigned shared;
    void **arguments, **extra;
};
struct fill_node {
    void *at;
    size_t pitch;
    unsigned value, element;
    size_t width, height;
};
struct host_node {
    void (*function)(void *);
    void *data;
};
struct allocation_node {
    char pool[88];
    const void *access;
    size_t accesses, bytes;
    void *at;
};

API error_t cudaGraphCreate(void **graph, unsigned flags) {
    (void)flags;
    struct answer answer = ASK("graph_create");
    *graph = (void *)(intptr_t)answer.value[0];
    return noted(answer.status);
}

static error_t launched(void *graph, const struct kernel_node *how) {
    return noted(launch(how->function, how->grid, how->block, how->arguments, packed_in(how->extra), how->shared, graph, 0,
                        ALONE));
}
static error_t filled(void *graph, const struct fill_node *how) {
    int64_t row = (int64_t)(how->width * how->element), pitch = how->height > 1 ? (int64_t)how->pitch : row;
    int64_t numbers[MOST_NUMBERS] = {N(how->at), how->value, row, (int64_t)how->height, pitch, N(graph), 1, how->element};
    return noted(ask_with("fill", numbers, NULL, 0, NULL, 0).status);
}
static error_t called(void *graph, const struct host_node *how) {
    return DO("host_function", N(graph), N(how->function), N(how->data));
}

#define ADD(name, type, structure, how)                                                                               \
    API error_t name(struct node **made, void *graph, struct node *const *after, size_t count, const structure *asked) { \
        (void)after, (void)count;                                                                                     \
        int64_t step = steps_of(graph);                                                                               \
        return new_node(made, graph, step, type, how(graph, asked));                                                  \
    }
ADD(cudaGraphAddKernelNode, KERNEL, struct kernel_node, launched)
ADD(cudaGraphAddMemsetNode, FILL, struct fill_node, filled)
ADD(cudaGraphAddHostNode, HOST, struct host_node, called)
static error_t copied(void *graph, const struct copy3d *how) { return copy_volume(how, graph, 1); }
ADD(cudaGraphAddMemcpyNode, COPY, struct copy3d, copied)

API error_t cudaGraphAddMemcpyNode1D(struct node **made, void *graph, struct node *const *after, size_t count, void *to,
                                     const void *from, size_t bytes, int kind) {
    (void)after, (void)count;
    int64_t step = steps_of(graph);
    return new_node(made, graph, step, COPY, copy(to, bytes, from, bytes, bytes, 1, kind, graph, 1));
}
API error_t cudaGraphAddEmptyNode(struct node **made, void *graph, struct node *const *after, size_t count) {
    (void)after, (void)count;
    return new_node(made, graph, steps_of(graph), EMPTY, 0);
}
API error_t cudaGraphAddChildGraphNode(struct node **made, void *graph, struct node *const *after, size_t count, void *child) {
    (void)after, (void)count;
    int64_t step = steps_of(graph);
    return new_node(made, graph, step, CHILD, DO("graph_append", N(graph), N(child)));
}
/* The memory of a graph is there from when its node is added, and stays. */
API error_t cudaGraphAddMemAllocNode(struct node **made, void *graph, struct node *const *after, size_t count,
                                     struct allocation_node *asked) {
    (void)after, (void)count;
    return new_node(made, graph, steps_of(graph), ALLOCATES, allocate(&asked->at, asked->bytes, DEVICE, 0));
}
API error_t cudaGraphAddMemFreeNode(struct node **made, void *graph, struct node *const *after, size_t count, void *at) {
    (void)after, (void)count, (void)at;
    return new_node(made, graph, steps_of(graph), FREES, 0);
}

/* A dependency on a node that was added later would need another order. */
API error_t cudaGraphAddDependencies(void *graph, struct node *const *from, struct node *const *to, ...) {
    (void)graph;
    if (from && to && *from && *to && (*from)->step > (*to)->step)
        return unsupported("graph nodes that depend on nodes which are added later");
    return 0;
}

API error_t cudaGraphNodeGetType(const struct node *node, int *type) {
    *type = node->type;
    return 0;
}
API error_t cudaGraphGetNodes(void *graph, struct node **nodes, size_t *count) {
    struct answer answer = ASK("graph_size", N(graph));
    for (size_t n = 0; nodes && n < *count && n < (size_t)answer.value[0]; n++)
        new_node(nodes + n, graph, (int64_t)n, (int)ASK("graph_step_type", N(graph), (int64_t)n).value[0], 0);
    *count = (size_t)answer.value[0];
    return noted(answer.status);
}

/* Change a step: what the graph would do next takes its place. */
static error_t replaced(void *graph, const struct node *node, error_t status) {
    return status ? status : DO("graph_replace", N(graph), node->step);
}
API error_t cudaGraphKernelNodeSetParams(struct node *node, const struct kernel_node *asked) {
    return replaced(node->graph, node, launched(node->graph, asked));
}
API error_t cudaGraphExecKernelNodeSetParams(void *made, struct node *node, const struct kernel_node *asked) {
    return replaced(made, node, launched(made, asked));
}
API error_t cudaGraphMemsetNodeSetParams(struct node *node, const struct fill_node *asked) {
    return replaced(node->graph, node, filled(node->graph, asked));
}
API error_t cudaGraphExecMemsetNodeSetParams(void *made, struct node *node, const struct fill_node *asked) {
    return replaced(made, node, filled(made, asked));
}
API error_t cudaGraphHostNodeSetParams(struct node *node, const struct host_node *asked) {
    return replaced(node->graph, node, called(node->graph, asked));
}
API error_t cudaGraphExecHostNodeSetParams(void *made, struct node *node, const struct host_node *asked) {
    return replaced(made, node, called(made, asked));
}
API error_t cudaGraphExecMemcpyNodeSetParams1D(void *made, struct node *node, void *to, const void *from, size_t bytes, int kind) {
    return replaced(made, node, copy(to, bytes, from, bytes, bytes, 1, kind, made, 1));
}

/* Graphs ------------------------------------------------------------------------------------------------------- */

API error_t cudaGraphInstantiate(void **made, void *graph, ...) {
    struct answer answer = ASK("graph_instantiate", N(graph));
    *made = (void *)(intptr_t)answer.value[0];
    return noted(answer.status);
}
API error_t cudaGraphInstantiateWithFlags(void **made, void *graph, unsigned long long flags) {
    (void)flags;
    return cudaGraphInstantiate(made, graph);
}
API error_t cudaGraphClone(void **made, void *graph) { return cudaGraphInstantiate(made, graph); }
API error_t cudaGraphNodeFindInClone(struct node **found, const struct node *node, void *clone) {
    return new_node(found, clone, node->step, node->type, 0);
}
API error_t cudaGraphExecUpdate(void *made, void *graph, int *result) {
    error_t status = DO("graph_update", N(made), N(graph));
    if (result)
        *result = status ? 1 : 0;
    return status;
}
API error_t cudaGraphLaunch(void *made, stream_t stream) {
    struct answer answer = ASK("graph_launch", N(made), N(stream));
    for (int64_t n = 0; !answer.status && n < answer.value[0]; n++) {
        struct answer step = ASK("graph_step", N(made), n, N(stream));
        if (step.status)
            return noted(step.status);
        if (step.value[0] == 1)
            move(step.value + 1);
        if (step.value[0] == 2)
            ((void (*)(void *))(intptr_t)step.value[1])((void *)(intptr_t)step.value[2]);
    }
    return noted(answer.status);
}
ALSO(cudaGraphLaunch_ptsz, cudaGraphLaunch);
API error_t cudaGraphUpload(void *made, stream_t stream) {
    (void)made, (void)stream;
    return 0;
}
ALSO(cudaGraphUpload_ptsz, cudaGraphUpload);
API error_t cudaGraphDestroy(void *graph) { return DO("graph_destroy", N(graph)); }
API error_t cudaGraphExecDestroy(void *made) { return DO("graph_destroy", N(made)); }
API error_t cudaGraphDebugDotPrint(void *graph, const char *path, unsigned flags) {
    (void)graph, (void)path, (void)flags;
    return unsupported("cudaGraphDebugDotPrint");
}
