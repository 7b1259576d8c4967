/* Calls on plain NumPy arrays. The arrays' fields are read directly: no buffer is exported, and
   nothing is allocated.

   The first fields of an ndarray and of its dtype are NumPy's stable ABI. They are declared here so
   that one binary works with every NumPy and Python. hbmcomm/transports/native.py compares
   these reads with NumPy's own values before it relies on them. The caller holds references to the
   objects, so that they stay. cffi releases Python's lock around each call: a program that sets the
   shape of an array, or resizes it, while another thread is in a call on it has a data race, as it has
   when it writes into the array. So it needs no ordering. */
#include "comm/comm.h"
#include "kernels/shapes.h"

typedef struct {
    intptr_t references;
    void *type;
} object;

typedef struct {
    object head;
    void *scalar;
    char kind, letter, byteorder, flags;
    int number;
} descriptor;

typedef struct {
    object head;
    char *data;
    int dimensions;
    intptr_t *shape, *strides;
    void *base;
    const descriptor *dtype;
    int flags;
} array;

#define CONTIGUOUS 0x3 /* in the order of C or of Fortran */
#define ALIGNED 0x100
#define WRITEABLE 0x400
#define NUMBERS 24

static uintptr_t ndarray, in_place; /* the address of the first is the type of an hbm_view */

_Static_assert(offsetof(hbm_view, type) == offsetof(object, type), "a view begins as an object");

/* By NumPy's type numbers; -1 where Python must read the arguments. */
static const signed char dtypes[NUMBERS] = {
    [0] = HBM_BOOL, [1] = HBM_INT8, [2] = HBM_UINT8, [3] = HBM_INT16, [4] = HBM_UINT16,
    [5] = HBM_INT32, [6] = HBM_UINT32,
    [7] = sizeof(long) == 8 ? HBM_INT64 : HBM_INT32,
    [8] = sizeof(long) == 8 ? HBM_UINT64 : HBM_UINT32,
    [9] = HBM_INT64, [10] = HBM_UINT64, [11] = HBM_FLOAT32, [12] = HBM_FLOAT64,
    [13] = HBM_LONGDOUBLE, [14] = HBM_COMPLEX64, [15] = HBM_COMPLEX128, [16] = HBM_CLONGDOUBLE,
    [17] = -1, [18] = -1, [19] = -1, [20] = -1, [21] = -1, [22] = -1, [23] = HBM_FLOAT16,
};

void hbm_numpy(uintptr_t type, uintptr_t placeholder)
{
    ndarray = type;
    in_place = placeholder;
}

void hbm_set_view(hbm_view *view, uintptr_t address, uint64_t entries, int dtype, int writable)
{
    *view = (hbm_view){.type = &ndarray, .address = address, .entries = entries, .dtype = dtype,
                       .writable = writable};
}

int hbm_is_in_place(uintptr_t id) { return id == in_place && in_place; }

int hbm_is_ndarray(uintptr_t id)
{
    return (uintptr_t)((const object *)id)->type == ndarray && ndarray;
}

/* The dtype's code; -1: not an exact ndarray or a view, not contiguous, not native, not writable. */
int hbm_read_array(uintptr_t id, int writable, uintptr_t *address, uint64_t *entries)
{
    const array *a = (const array *)id;
    int needed = ALIGNED | (writable ? WRITEABLE : 0);
    if (a->head.type == &ndarray) {
        const hbm_view *view = (const hbm_view *)id;
        *address = view->address;
        *entries = view->entries;
        return writable && !view->writable ? -1 : view->dtype;
    }
    if ((uintptr_t)a->head.type != ndarray || !ndarray)
        return -1;
    if ((a->flags & needed) != needed || !(a->flags & CONTIGUOUS))
        return -1;
    int number = a->dtype->number, order = a->dtype->byteorder;
    if (number < 0 || number >= NUMBERS || (order != '=' && order != '|'))
        return -1;
    uint64_t n = 1;
    for (int i = 0; i < a->dimensions; i++)
        n *= (uint64_t)a->shape[i];
    *address = (uintptr_t)a->data;
    *entries = n;
    return dtypes[number];
}

/* ---- calls on arrays ---- */

static int read_bcast(const hbm_comm *c, uintptr_t buffer, int root, hbm_call *call)
{
    *call = (hbm_call){.operation = HBM_BCAST, .root = root};
    if (!c || root < 0 || root >= c->size)
        return 0;
    int dtype = hbm_read_array(buffer, root != c->rank, &call->send, &call->count);
    call->dtype = (uint8_t)dtype;
    call->recv = call->send;
    return dtype >= 0;
}

/* Gather, scatter, allgather, alltoall: `send`, `recv` or both hold one block for each rank. One of
   them may be MPI.IN_PLACE where that needs no copy: this rank's block is then in the other. */
static int read_blocks(const hbm_comm *c, int operation, uintptr_t send, uintptr_t recv, int root,
                       hbm_call *call)
{
    *call = (hbm_call){.operation = (uint8_t)operation, .root = root};
    if (!c || root < 0 || root >= c->size)
        return 0;
    uint64_t n = (uint64_t)c->size, sent = 0, received = 0;
    const hbm_shape *shape = shape_of(operation);
    int leaf = root != c->rank, both = shape->sends_each && shape->receives_each;
    int reads = !(leaf && shape->from_root), writes = !(leaf && shape->to_root);
    int shares = reads && writes && !both
                 && hbm_is_in_place(shape->sends_each ? recv : send);
    int given = reads && !(shares && shape->receives_each)
                    ? hbm_read_array(send, 0, &call->send, &sent) : -1;
    int taken = writes && !(shares && shape->sends_each)
                    ? hbm_read_array(recv, 1, &call->recv, &received) : -1;
    int dtype = given < 0 ? taken : given;
    call->dtype = (uint8_t)dtype;
    if (shares) {
        uint64_t all = sent + received;
        call->count = all / n;
        uint64_t own = (uint64_t)c->rank * call->count * (dtype < 0 ? 0 : hbm_dtype_size(dtype));
        *(shape->sends_each ? &call->recv : &call->send) =
            (shape->sends_each ? call->send : call->recv) + own;
        return dtype >= 0 && all % n == 0;
    }
    if ((reads && given < 0) || (writes && taken < 0) || (reads && writes && given != taken))
        return 0;
    if (both) {
        call->count = sent / n;
        return sent == received && sent % n == 0;
    }
    call->count = shape->receives_each ? sent : received;
    return !reads || !writes || (shape->receives_each ? received : sent) == n * call->count;
}

/* Reductions; `send` may be MPI.IN_PLACE where that needs no copy. */
static int read_reduction(const hbm_comm *c, int operation, uintptr_t send, uintptr_t recv,
                          int reduction, int root, hbm_call *call)
{
    *call = (hbm_call){.operation = (uint8_t)operation, .reduction = (uint8_t)reduction,
                       .root = root};
    if (!c || root < 0 || root >= c->size)
        return 0;
    uint64_t sent = 0, received = 0;
    const hbm_shape *shape = shape_of(operation);
    int scatter = shape->sends_each, writes = !shape->to_root || root == c->rank;
    int given, taken = -1;
    if (writes)
        taken = hbm_read_array(recv, 1, &call->recv, &received);
    if (send == in_place && writes && !scatter) {
        given = taken;
        call->send = call->recv;
        sent = received;
    } else {
        given = hbm_read_array(send, 0, &call->send, &sent);
    }
    if (given < 0 || (writes && given != taken) || !hbm_reduces(given, reduction))
        return 0;
    call->dtype = (uint8_t)given;
    call->count = writes ? received : sent;
    return !writes || sent == (scatter ? received * (uint64_t)c->size : received);
}

int hbm_read_call(const hbm_comm *c, int operation, uintptr_t send, uintptr_t recv, int reduction,
                  int root, hbm_call *call)
{
    const hbm_shape *shape = shape_of(operation);
    if (operation >= HBM_FOREIGN || shape->lengths != HBM_EQUAL)
        return 0; /* counts and offsets are in lists */
    if (shape->reduces)
        return read_reduction(c, operation, send, recv, reduction, root, call);
    if (shape->sends_each || shape->receives_each)
        return read_blocks(c, operation, send, recv, root, call);
    if (operation == HBM_BCAST)
        return read_bcast(c, send, root, call);
    *call = (hbm_call){.operation = HBM_BARRIER};
    return 1;
}

int hbm_barrier(hbm_comm *c)
{
    hbm_call call = {.operation = HBM_BARRIER};
    return hbm_run(c, &call);
}
