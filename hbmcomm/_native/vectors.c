/* Reads the arguments of calls whose blocks differ in length: arrays with counts and displacements,
   in the forms of mpi4py that programs use most. Python reads all others.

   It reads objects of the program under Python's lock, and memory of no other rank, so it needs no
   ordering. */
#include "objects.h"

#include "comm/comm.h"
#include "kernels/shapes.h"

/* One side of a call, `array` a new reference. Without parts it is one block. */
typedef struct {
    PyObject *array;
    uintptr_t address;
    uint64_t entries;
    int dtype;
} side;

static PyObject *item(PyObject *spec, Py_ssize_t i)
{
    return PyList_CheckExact(spec) ? PyList_GetItem(spec, i) : PyTuple_GetItem(spec, i);
}

static Py_ssize_t length(PyObject *spec)
{
    return PyList_CheckExact(spec) ? PyList_Size(spec) : PyTuple_Size(spec);
}

static int read_number(PyObject *object, uint64_t *into)
{
    long long value = PyLong_CheckExact(object) ? PyLong_AsLongLong(object) : -1;
    if (value < 0)
        PyErr_Clear();
    *into = (uint64_t)value;
    return value >= 0;
}

/* Whole numbers from 0 on, one for each rank: a list, a tuple, or an array of integers. */
static int read_numbers(PyObject *numbers, int ranks, uint64_t *into)
{
    uintptr_t address;
    uint64_t entries;
    if (hbm_is_list(numbers)) {
        int complete = length(numbers) == ranks;
        for (int r = 0; complete && r < ranks; r++)
            complete = read_number(item(numbers, r), &into[r]);
        return complete;
    }
    int dtype = hbm_read_array((uintptr_t)numbers, 0, &address, &entries);
    if ((dtype != HBM_INT64 && dtype != HBM_INT32) || entries != (uint64_t)ranks)
        return 0;
    for (int r = 0; r < ranks; r++) {
        int64_t value = dtype == HBM_INT64 ? ((const int64_t *)address)[r]
                                           : ((const int32_t *)address)[r];
        if (value < 0)
            return 0;
        into[r] = (uint64_t)value;
    }
    return 1;
}

/* The parts of an array, in bytes. Without counts all are as long; without displacements they follow
   each other. */
static int set_parts(const side *s, int ranks, PyObject *counts, PyObject *displacements,
                     hbm_part *parts)
{
    uint64_t numbers[MAX_RANKS], size = hbm_dtype_size(s->dtype), at = 0;
    if (!counts && s->entries % (uint64_t)ranks)
        return 0;
    if (counts && !read_numbers(counts, ranks, numbers))
        return 0;
    for (int r = 0; r < ranks; r++)
        parts[r].bytes = counts ? numbers[r] : s->entries / (uint64_t)ranks;
    if (displacements && !read_numbers(displacements, ranks, numbers))
        return 0;
    for (int r = 0; r < ranks; r++) {
        uint64_t count = parts[r].bytes, first = displacements ? numbers[r] : at;
        if (first > s->entries || count > s->entries - first)
            return 0;
        at = first + count;
        parts[r] = (hbm_part){first * size, count * size};
    }
    return 1;
}

/* What a specification names: an array, and the rest or NULL. */
typedef struct {
    PyObject *array, *counts, *displacements, *datatype;
} spelling;

/* An array; [array, type]; [array, counts], [array, (counts, displacements)], each with or without a
   type; [array, counts, displacements, type]. New references: another thread, or a finalizer, may
   change the list meanwhile. */
static int spelled(PyObject *spec, spelling *s)
{
    *s = (spelling){.array = spec};
    if (hbm_is_list(spec)) {
        Py_ssize_t given = length(spec);
        if (given < 2 || given > 4)
            return 0;
        s->array = item(spec, 0);
        s->datatype = given == 2 ? NULL : item(spec, given - 1);
        s->displacements = given == 4 ? item(spec, 2) : NULL;
        s->counts = item(spec, 1);
        if (given == 2 && hbm_dtype_of(s->counts) >= 0) {
            s->datatype = s->counts;
            s->counts = NULL;
        }
    }
    if (s->counts && !s->displacements && PyTuple_CheckExact(s->counts)) {
        if (PyTuple_Size(s->counts) != 2)
            return 0;
        s->displacements = PyTuple_GetItem(s->counts, 1);
        s->counts = PyTuple_GetItem(s->counts, 0);
    }
    Py_INCREF(s->array);
    Py_XINCREF(s->counts);
    Py_XINCREF(s->displacements);
    Py_XINCREF(s->datatype);
    return 1;
}

/* Reads a side of a call. Parts where `parts` is not NULL. */
static int read_side(PyObject *spec, int writable, int ranks, hbm_part *parts, side *s)
{
    spelling named;
    hbm_view view;
    if (!spelled(spec, &named))
        return 0;
    s->dtype = hbm_read_array((uintptr_t)named.array, writable, &s->address, &s->entries);
    if (s->dtype >= 0) {
        Py_INCREF(named.array);
        s->array = named.array;
    } else if (!hbm_is_list(named.array) && (s->array = hbm_open_array(named.array, &view))) {
        s->dtype = hbm_read_array((uintptr_t)&view, writable, &s->address, &s->entries);
    }
    int complete = s->dtype >= 0
                   && (!named.datatype || hbm_dtype_of(named.datatype) == s->dtype)
                   && (!named.counts || parts)
                   && (!parts || set_parts(s, ranks, named.counts, named.displacements, parts));
    Py_DECREF(named.array);
    Py_XDECREF(named.counts);
    Py_XDECREF(named.displacements);
    Py_XDECREF(named.datatype);
    return complete;
}

/* Sets a call from both sides. A side without an array is MPI.IN_PLACE, and this rank's block is then
   in the other one, or this rank has no such side. */
static int join(const hbm_comm *c, const hbm_shape *shape, const side *sent, const side *received,
                const hbm_part *parts, hbm_call *call)
{
    const hbm_part *own_sent = shape->sends_each && sent->array ? &parts[c->rank] : NULL;
    const hbm_part *own_received = shape->receives_each && received->array
                                       ? &parts[c->size + c->rank] : NULL;
    const side *own = shape->receives_each && !shape->sends_each && sent->array ? sent
                      : received->array ? received : sent;
    const hbm_part *block = own == sent ? own_sent : own_received; /* this rank's own */
    uint64_t size = hbm_dtype_size(own->dtype);
    call->send = sent->address;
    call->recv = received->address;
    call->dtype = (uint8_t)own->dtype;
    call->count = block ? block->bytes / size : own->entries;
    if (own_sent)
        call->send_parts = parts;
    if (own_received)
        call->recv_parts = parts + c->size;
    if (sent->array && received->array) {
        uint64_t given = own_sent ? own_sent->bytes : sent->entries * size;
        uint64_t taken = own_received ? own_received->bytes : received->entries * size;
        return sent->dtype == received->dtype && given == taken;
    }
    if (block) /* in place, at the root or on every rank */
        *(own == sent ? &call->recv : &call->send) = own->address + block->offset;
    return 1;
}

int hbm_read_vectors(const hbm_comm *c, int operation, PyObject *send, PyObject *recv, int root,
                     hbm_part *parts, PyObject **kept, hbm_call *call)
{
    const hbm_shape *shape = shape_of(operation);
    side sent = {0}, received = {0};
    int at_root = root == c->rank, both = shape->sends_each && shape->receives_each;
    int reads = at_root || !shape->from_root, writes = at_root || !shape->to_root;
    *call = (hbm_call){.operation = (uint8_t)operation, .root = root};
    if (root < 0 || root >= c->size || c->size > MAX_RANKS) /* hosts together may have more */
        return 0;
    int shares = reads && writes && !both;
    int reads_array = reads && !(shares && shape->receives_each && hbm_is_in_place((uintptr_t)send));
    int writes_array = writes && !(shares && shape->sends_each && hbm_is_in_place((uintptr_t)recv));
    int complete = (!reads_array
                    || read_side(send, 0, c->size, shape->sends_each ? parts : NULL, &sent))
                   && (!writes_array
                       || read_side(recv, 1, c->size, shape->receives_each ? parts + c->size : NULL,
                                    &received))
                   && join(c, shape, &sent, &received, parts, call);
    kept[0] = sent.array;
    kept[1] = received.array;
    return complete;
}
