/* Lower-case collectives: Python objects as messages of the core.

   A message is a pickle. Memory of NumPy's arrays stays out of it (protocol 5), unless the program
   has set a pickler of its own for mpi4py; a message then has the lengths of such buffers, the pickle
   and the buffers. Other objects that offer buffers get bytes or a bytearray back, as from mpi4py:
   they may keep that object, or read all of the memory that a view is part of.

   Ranks exchange short blocks first. A block has a head and, if there is room, the message. The heads
   say whether any message is longer. Where all ranks learn that, what is longer follows in another
   collective. In a gather only the root learns it, so that there always is another one.

   A rank that only sends short messages waits for nobody, as long as it is not SLOTS calls of the core
   ahead. A rank that cannot pickle its object says so in its head and raises the error. Ranks that
   should have received it raise an error too, and the communicator stays usable.

   As methods.c, this file knows Python, and uses its stable ABI. */
#include "objects.h"

#include <stdlib.h>

#include "comm/comm.h"
#include "kernels/shapes.h"

#define BLOCK 256 /* bytes: small objects fit */
#define FAILED (-1)
#define SHORT 4096 /* bytes of an array that stays in its pickle */
#define LARGE (32 * 1024) /* bytes of a buffer that is worth a broadcast of its own */
#define FEW 8 /* messages that need no memory of their own */

typedef struct {
    int64_t data;     /* bytes of the pickle, or FAILED */
    uint64_t buffers; /* how many it leaves out */
    uint64_t bytes;   /* of the message */
    uint64_t longest; /* of all messages of its sender, if one has no room in its block; else 0 */
} head;

#define ROOM (BLOCK - sizeof(head))

typedef struct {
    PyObject *data;   /* NULL: it cannot be pickled */
    Py_buffer *views; /* of buffers that the pickle leaves out */
    head head;
} message;

/* One call of one rank. */
typedef struct {
    hbm_comm *comm;
    PyObject *self, *name;
    int operation, moves, root, is_standard;
    int sent, received; /* blocks, which are one after the other in `blocks` */
    PyObject *blocks;
    message *messages;  /* that are sent */
    head *heads;        /* of what is received */
    PyObject **long_ones; /* bytearrays of what has no room in its block; else NULL */
    PyObject *error[3]; /* of pickling */
    int gives_up;       /* it cannot go on with what the others do now */
} exchange;

static PyObject *dumps, *loads, *pickler, *buffer_type, *get_referents, *protocol;

void hbm_pickles(uintptr_t dumps_object, uintptr_t loads_object, uintptr_t pickler_object,
                 uintptr_t buffer_object, uintptr_t get_referents_object, int highest_protocol)
{
    PyGILState_STATE state = PyGILState_Ensure();
    dumps = (PyObject *)dumps_object;
    loads = (PyObject *)loads_object;
    pickler = (PyObject *)pickler_object;
    buffer_type = (PyObject *)buffer_object;
    get_referents = (PyObject *)get_referents_object;
    protocol = PyLong_FromLong(highest_protocol);
    Py_INCREF(dumps);
    Py_INCREF(loads);
    Py_INCREF(pickler);
    Py_INCREF(buffer_type);
    Py_INCREF(get_referents);
    PyGILState_Release(state);
}

/* Whether mpi4py pickles by Python's own functions: a program may have set others. */
static int is_standard(void)
{
    PyObject *set = PyObject_CallFunctionObjArgs(get_referents, pickler, NULL);
    int standard = set && PyList_Size(set) >= 3 && PyList_GetItem(set, 0) == dumps
                   && PyList_GetItem(set, 1) == loads
                   && PyObject_RichCompareBool(PyList_GetItem(set, 2), protocol, Py_EQ) == 1;
    Py_XDECREF(set);
    PyErr_Clear();
    return standard;
}

static uint64_t aligned(uint64_t bytes) { return (bytes + 15) / 16 * 16; } /* for any dtype */

static int moves_of(int operation)
{
    switch (operation) {
    case HBM_REDUCE:
        return HBM_GATHER;
    case HBM_ALLREDUCE:
    case HBM_SCAN:
    case HBM_EXSCAN:
        return HBM_ALLGATHER;
    default:
        return operation;
    }
}

/* ---- pickling ---- */

/* Called by `dumps` with a buffer that an object offers, and with the list of those to leave out;
   returns whether the pickle holds it. */
static PyObject *holds_buffer(PyObject *buffers, PyObject *buffer)
{
    PyObject *raw = PyObject_CallMethod(buffer, "raw", NULL);
    PyObject *owner = raw ? PyObject_GetAttrString(raw, "obj") : NULL;
    int is_left_out = owner && hbm_is_ndarray((uintptr_t)owner);
    Py_XDECREF(owner);
    Py_XDECREF(raw);
    PyErr_Clear(); /* `dumps` refuses a buffer with gaps */
    if (is_left_out && PyList_Append(buffers, buffer))
        return NULL;
    return PyBool_FromLong(!is_left_out);
}

static PyMethodDef callback = {"holds_buffer", holds_buffer, METH_O, NULL};

/* Takes hold of the buffers that a pickle leaves out. */
static int take_buffers(message *m, PyObject *buffers)
{
    Py_ssize_t count = PyList_Size(buffers);
    if (!count)
        return 1;
    m->views = calloc((size_t)count, sizeof *m->views);
    for (Py_ssize_t i = 0; m->views && i < count; i++) {
        PyObject *raw = PyObject_CallMethod(PyList_GetItem(buffers, i), "raw", NULL);
        int is_taken = raw && PyObject_GetBuffer(raw, &m->views[i], PyBUF_SIMPLE) == 0;
        Py_XDECREF(raw);
        if (!is_taken)
            return 0;
        m->head.buffers++;
    }
    if (!m->views)
        PyErr_NoMemory();
    return m->views != NULL;
}

/* Whether an object is one that a program cannot tell from a copy, but for its identity. */
static int is_immutable(PyObject *object)
{
    return PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object)
           || PyBytes_CheckExact(object) || PyBool_Check(object) || object == Py_None;
}

/* Whether a pickle holds all of an object: it has no buffers, or is a short array. To leave those out
   would take longer than to copy them. */
static int stays_whole(PyObject *object)
{
    uintptr_t address;
    uint64_t entries;
    int dtype = hbm_read_array((uintptr_t)object, 0, &address, &entries);
    if (dtype >= 0)
        return entries * hbm_dtype_size(dtype) <= SHORT;
    return is_immutable(object);
}

static PyObject *pickled(const exchange *e, message *m, PyObject *object)
{
    if (!e->is_standard)
        return PyObject_CallMethod(pickler, "dumps", "O", object);
    if (stays_whole(object))
        return PyObject_CallFunctionObjArgs(dumps, object, protocol, NULL);
    PyObject *buffers = PyList_New(0), *data = NULL;
    PyObject *asked = buffers ? PyCFunction_New(&callback, buffers) : NULL;
    PyObject *named = asked ? Py_BuildValue("{s:O}", "buffer_callback", asked) : NULL;
    PyObject *positional = named ? PyTuple_Pack(2, object, protocol) : NULL;
    if (positional)
        data = PyObject_Call(dumps, positional, named);
    if (data && !take_buffers(m, buffers))
        Py_CLEAR(data);
    Py_XDECREF(positional);
    Py_XDECREF(named);
    Py_XDECREF(asked);
    Py_XDECREF(buffers);
    return data;
}

static void drop_message(message *m)
{
    for (uint64_t i = 0; i < m->head.buffers; i++)
        PyBuffer_Release(&m->views[i]);
    free(m->views);
    Py_CLEAR(m->data);
    *m = (message){.head = {.data = FAILED}};
}

/* Keeps the first error of pickling for the end of the call. */
static void keep_error(exchange *e)
{
    PyObject *error[3];
    int is_first = !e->error[0];
    PyErr_Fetch(&error[0], &error[1], &error[2]);
    for (int i = 0; i < 3; i++) {
        if (is_first)
            e->error[i] = error[i];
        else
            Py_XDECREF(error[i]);
    }
}

static void pickle_one(exchange *e, message *m, PyObject *object)
{
    m->data = pickled(e, m, object);
    if (m->data && !PyBytes_Check(m->data)) {
        PyErr_SetString(PyExc_TypeError, "the pickler that is set for MPI gives no bytes");
        Py_CLEAR(m->data);
    }
    if (!m->data) {
        drop_message(m);
        keep_error(e);
        return;
    }
    m->head.data = PyBytes_Size(m->data);
    m->head.bytes = (uint64_t)PyBytes_Size(m->data);
    if (m->head.buffers)
        m->head.bytes = aligned(8 * m->head.buffers) + aligned(m->head.bytes);
    for (uint64_t i = 0; i < m->head.buffers; i++)
        m->head.bytes += aligned((uint64_t)m->views[i].len);
}

/* One message for all ranks, or for each of them one of a sequence. */
static void pickle_all(exchange *e, PyObject *object)
{
    if (!shape_of(e->moves)->sends_each) {
        pickle_one(e, &e->messages[0], object);
        return;
    }
    if (object == Py_None) { /* as in mpi4py: None for each rank */
        for (int i = 0; i < e->sent; i++)
            pickle_one(e, &e->messages[i], object);
        return;
    }
    PyObject *objects = PySequence_List(object);
    Py_ssize_t count = objects ? PyList_Size(objects) : 0;
    if (objects && count != e->sent)
        PyErr_Format(PyExc_ValueError, "expecting %d items, got %zd", e->sent, count);
    if (PyErr_Occurred())
        keep_error(e);
    for (int i = 0; i < e->sent; i++) {
        if (e->error[0])
            e->messages[i].head.data = FAILED;
        else
            pickle_one(e, &e->messages[i], PyList_GetItem(objects, i));
    }
    Py_XDECREF(objects);
}

/* Writes the lengths of buffers and the pickle, and the buffers too. */
static void write_message(const message *m, char *to, int with_buffers)
{
    for (uint64_t i = 0; i < m->head.buffers; i++) {
        uint64_t length = (uint64_t)m->views[i].len;
        memcpy(to + 8 * i, &length, sizeof length);
    }
    to += aligned(8 * m->head.buffers);
    memcpy(to, PyBytes_AsString(m->data), (size_t)m->head.data);
    to += aligned((uint64_t)m->head.data);
    for (uint64_t i = 0; i < m->head.buffers && with_buffers; i++) {
        memcpy(to, m->views[i].buf, (size_t)m->views[i].len);
        to += aligned((uint64_t)m->views[i].len);
    }
}

/* ---- calls of the core ---- */

static hbm_call call_of(const exchange *e, int operation)
{
    return (hbm_call){.operation = (uint8_t)operation, .dtype = HBM_UINT8, .root = e->root,
                      .reduction = (uint8_t)(HBM_OBJECTS + e->operation)};
}

static int run(const exchange *e, const hbm_call *call)
{
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = hbm_run(e->comm, call);
    Py_END_ALLOW_THREADS
    if (status) {
        PyObject *raised = PyObject_CallMethod(e->self, "_check", "i", status);
        Py_XDECREF(raised);
    }
    return !status;
}

static int give_up(exchange *e, PyObject *kind, const char *why)
{
    PyErr_SetString(kind, why);
    e->gives_up = 1;
    return 0;
}

static int has_no_memory(exchange *e)
{
    return give_up(e, PyExc_MemoryError, "no memory for objects of other ranks");
}

static int is_garbled(exchange *e)
{
    return give_up(e, PyExc_RuntimeError, "an object came with wrong lengths");
}

/* ---- blocks ---- */

static uint64_t before_buffers(const head *h)
{
    return aligned(8 * h->buffers) + aligned((uint64_t)h->data);
}

static int is_sound(const head *h)
{
    if (h->data == FAILED)
        return !h->bytes;
    if (!h->buffers)
        return h->data >= 0 && (uint64_t)h->data == h->bytes;
    return h->data >= 0 && (uint64_t)h->data <= h->bytes && h->buffers <= h->bytes / 8
           && before_buffers(h) <= h->bytes;
}

/* The length of a buffer of a message from `at` on; returns whether it is in the message. */
static int length_of(const head *h, const char *content, uint64_t buffer, uint64_t at,
                     uint64_t *length)
{
    memcpy(length, content + 8 * buffer, sizeof *length);
    return at <= h->bytes && *length <= h->bytes - at;
}

static char *sent_block(const exchange *e, int index)
{
    return PyBytes_AsString(e->blocks) + (size_t)index * BLOCK;
}

/* In a broadcast there is one block, which some send and some receive. */
static char *received_block(const exchange *e, int index) { return sent_block(e, e->sent + index); }

static int exchange_blocks(exchange *e)
{
    uint64_t longest = 0;
    for (int i = 0; i < e->sent; i++)
        if (e->messages[i].head.bytes > ROOM && e->messages[i].head.bytes > longest)
            longest = e->messages[i].head.bytes;
    for (int i = 0; i < e->sent; i++) {
        message *m = &e->messages[i];
        m->head.longest = longest;
        memcpy(sent_block(e, i), &m->head, sizeof m->head);
        if (m->data && m->head.bytes <= ROOM)
            write_message(m, sent_block(e, i) + sizeof m->head, 1);
    }
    hbm_call call = call_of(e, e->moves);
    call.count = BLOCK;
    call.send = (uintptr_t)sent_block(e, 0);
    call.recv = e->moves == HBM_BCAST ? call.send : (uintptr_t)received_block(e, 0);
    if (!run(e, &call))
        return 0;
    for (int i = 0; i < e->received; i++)
        memcpy(&e->heads[i], received_block(e, i), sizeof e->heads[i]);
    for (int i = 0; i < e->received; i++)
        if (!is_sound(&e->heads[i]))
            return is_garbled(e);
    return 1;
}

/* ---- what has no room in blocks ---- */

static uint64_t follows(const head *h) { return h->bytes > ROOM ? aligned(h->bytes) : 0; }

static int something_follows(const exchange *e)
{
    int has_long = 0;
    for (int i = 0; i < e->sent; i++)
        has_long |= e->messages[i].head.bytes > ROOM;
    for (int i = 0; i < e->received; i++)
        has_long |= e->moves == HBM_GATHER ? follows(&e->heads[i]) > 0 : e->heads[i].longest > 0;
    return has_long;
}

/* The second collective of a gather where this rank knows of nothing that follows. */
static int gather_nothing(exchange *e)
{
    static const hbm_part none[MAX_RANKS];
    size_t ranks = (size_t)e->comm->size;
    hbm_part *many = ranks > MAX_RANKS ? calloc(ranks, sizeof *many) : NULL; /* on several hosts */
    if (ranks > MAX_RANKS && !many)
        return has_no_memory(e);
    hbm_call call = call_of(e, HBM_GATHERV);
    call.recv_parts = many ? many : none;
    int done = run(e, &call);
    free(many);
    return done;
}

static int receive_into_bytearrays(exchange *e)
{
    for (int i = 0; i < e->received; i++) {
        uint64_t bytes = follows(&e->heads[i]);
        if (bytes && !(e->long_ones[i] = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes)))
            return has_no_memory(e);
    }
    return 1;
}

static int bcast_bytes(const exchange *e, const void *memory, uint64_t bytes)
{
    hbm_call call = call_of(e, HBM_BCAST);
    call.send = call.recv = (uintptr_t)memory;
    call.count = bytes;
    return run(e, &call);
}

/* Each buffer goes from where it is to where it stays. */
static int bcast_buffers(exchange *e, const head *h)
{
    const message *m = e->sent ? &e->messages[0] : NULL;
    char *memory = m ? malloc(before_buffers(h)) : PyByteArray_AsString(e->long_ones[0]);
    if (!memory)
        return has_no_memory(e);
    if (m)
        write_message(m, memory, 0);
    int goes_on = bcast_bytes(e, memory, before_buffers(h));
    uint64_t at = before_buffers(h), length;
    for (uint64_t i = 0; goes_on && i < h->buffers; i++) {
        goes_on = length_of(h, memory, i, at, &length) || is_garbled(e);
        if (goes_on)
            goes_on = bcast_bytes(e, m ? m->views[i].buf : memory + at, length);
        at += aligned(length);
    }
    if (m)
        free(memory);
    return goes_on;
}

/* The collective of counted bytes. `parts` has room for what is sent and for what is received. */
static int exchange_counted(const exchange *e, char *joined, hbm_part *parts)
{
    static const int counted[] = {[HBM_BCAST] = HBM_BCAST, [HBM_GATHER] = HBM_GATHERV,
                                  [HBM_SCATTER] = HBM_SCATTERV, [HBM_ALLGATHER] = HBM_ALLGATHERV,
                                  [HBM_ALLTOALL] = HBM_ALLTOALLV};
    hbm_call call = call_of(e, counted[e->moves]);
    hbm_part *sent = parts, *received = parts + e->sent;
    uint64_t at = 0;
    for (int i = 0; i < e->sent; i++) {
        uint64_t bytes = follows(&e->messages[i].head);
        sent[i] = (hbm_part){at, bytes};
        if (bytes)
            write_message(&e->messages[i], joined + at, 1);
        at += bytes;
    }
    call.send = call.recv = (uintptr_t)joined;
    for (int i = 0; i < e->received; i++)
        if (e->long_ones[i]) {
            uintptr_t place = (uintptr_t)PyByteArray_AsString(e->long_ones[i]);
            call.recv = place < call.recv ? place : call.recv;
        }
    for (int i = 0; i < e->received; i++) {
        uintptr_t place = e->long_ones[i] ? (uintptr_t)PyByteArray_AsString(e->long_ones[i])
                                          : call.recv;
        received[i] = (hbm_part){place - call.recv, follows(&e->heads[i])};
    }
    const hbm_shape *shape = shape_of(e->moves);
    if (shape->sends_each && e->sent)
        call.send_parts = sent;
    if (shape->receives_each && e->received)
        call.recv_parts = received;
    if (e->moves == HBM_BCAST || e->moves == HBM_SCATTER) /* one message comes */
        call.recv += e->received ? received[0].offset : 0;
    if (e->moves == HBM_BCAST)
        call.send = call.recv = e->received ? call.recv : call.send;
    int own_is_received = !e->sent || e->moves == HBM_SCATTER;
    int own = e->moves == HBM_ALLTOALL ? e->comm->rank : 0;
    call.count = own_is_received ? received[0].bytes : sent[own].bytes;
    return run(e, &call);
}

static int follow(exchange *e)
{
    const head *h = e->received ? &e->heads[0] : &e->messages[0].head;
    if (!receive_into_bytearrays(e))
        return 0;
    if (e->moves == HBM_BCAST && h->buffers && h->bytes / h->buffers >= LARGE)
        return bcast_buffers(e, h);
    uint64_t bytes = 16;
    for (int i = 0; i < e->sent; i++)
        bytes += follows(&e->messages[i].head);
    char *joined = malloc(bytes);
    hbm_part *parts = calloc((size_t)(e->sent + e->received), sizeof *parts);
    int done = joined && parts ? exchange_counted(e, joined, parts) : has_no_memory(e);
    free(joined);
    free(parts);
    return done;
}

/* ---- loading ---- */

static PyObject *load_with_buffers(const head *h, PyObject *memory)
{
    PyObject *view = PyMemoryView_FromObject(memory), *buffers = PyList_New(0), *result = NULL;
    uint64_t at = before_buffers(h), begin = aligned(8 * h->buffers), length;
    int is_right = view && buffers;
    for (uint64_t i = 0; is_right && i < h->buffers; i++) {
        PyObject *part = NULL;
        if (length_of(h, PyByteArray_AsString(memory), i, at, &length))
            part = PySequence_GetSlice(view, (Py_ssize_t)at, (Py_ssize_t)(at + length));
        is_right = part && PyList_Append(buffers, part) == 0;
        Py_XDECREF(part);
        at += aligned(length);
    }
    PyObject *data = is_right ? PySequence_GetSlice(view, (Py_ssize_t)begin,
                                                    (Py_ssize_t)(begin + (uint64_t)h->data))
                              : NULL;
    PyObject *positional = data ? PyTuple_Pack(1, data) : NULL;
    PyObject *named = positional ? Py_BuildValue("{s:O}", "buffers", buffers) : NULL;
    if (named)
        result = PyObject_Call(loads, positional, named);
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, "an object came with wrong lengths");
    Py_XDECREF(named);
    Py_XDECREF(positional);
    Py_XDECREF(data);
    Py_XDECREF(buffers);
    Py_XDECREF(view);
    return result;
}

static PyObject *load_pickle(const exchange *e, PyObject *data)
{
    if (e->is_standard)
        return PyObject_CallFunctionObjArgs(loads, data, NULL);
    if (!PyBytes_Size(data)) { /* as in mpi4py: what is empty is None */
        Py_INCREF(Py_None);
        return Py_None;
    }
    PyObject *own = PyByteArray_FromObject(data); /* may be written, as in mpi4py */
    PyObject *buffer = own ? PyObject_CallFunctionObjArgs(buffer_type, own, NULL) : NULL;
    PyObject *result = buffer ? PyObject_CallMethod(pickler, "loads", "O", buffer) : NULL;
    Py_XDECREF(buffer);
    Py_XDECREF(own);
    return result;
}

static PyObject *load(const exchange *e, int index)
{
    const head *h = &e->heads[index];
    const char *block = received_block(e, index) + sizeof *h;
    PyObject *memory = e->long_ones[index], *result = NULL;
    if (h->buffers) {
        memory = memory ? memory : PyByteArray_FromStringAndSize(block, (Py_ssize_t)h->bytes);
        result = memory ? load_with_buffers(h, memory) : NULL;
        e->long_ones[index] = memory;
        return result;
    }
    PyObject *data = PyBytes_FromStringAndSize(memory ? PyByteArray_AsString(memory) : block,
                                               h->data);
    if (data)
        result = load_pickle(e, data);
    Py_XDECREF(data);
    return result;
}

/* What the root of a broadcast gets: a copy, as all others, and as from mpi4py. */
static PyObject *copy_of_own(const exchange *e, PyObject *object)
{
    const message *m = &e->messages[0];
    if (e->is_standard && is_immutable(object)) { /* another pickler may change what it sends */
        Py_INCREF(object);
        return object;
    }
    if (!m->head.buffers)
        return load_pickle(e, m->data);
    PyObject *memory = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)m->head.bytes);
    if (!memory)
        return NULL;
    write_message(m, PyByteArray_AsString(memory), 1);
    PyObject *result = load_with_buffers(&m->head, memory);
    Py_DECREF(memory);
    return result;
}

static PyObject *load_all(const exchange *e)
{
    for (int i = 0; i < e->received; i++)
        if (e->heads[i].data == FAILED) {
            int rank = shape_of(e->moves)->from_root ? e->root : i;
            return PyObject_CallMethod(e->self, "_miss", "iO", rank, e->name);
        }
    PyObject *objects = PyList_New(e->received);
    for (int i = 0; objects && i < e->received; i++) {
        PyObject *object = load(e, i);
        if (object)
            PyList_SetItem(objects, i, object);
        else
            Py_CLEAR(objects);
    }
    return objects;
}

/* ---- calls ---- */

/* The first objects, reduced in their order. */
static PyObject *reduced(PyObject *objects, int count, PyObject *op)
{
    PyObject *result = PyList_GetItem(objects, 0);
    Py_XINCREF(result);
    for (int i = 1; result && i < count; i++) {
        PyObject *next = PyObject_CallFunctionObjArgs(op, result, PyList_GetItem(objects, i), NULL);
        Py_DECREF(result);
        result = next;
    }
    return result;
}

static PyObject *result_of(const exchange *e, PyObject *objects, PyObject *op)
{
    PyObject *result = Py_None;
    int rank = e->comm->rank, count = e->received;
    switch (e->operation) {
    case HBM_BCAST:
    case HBM_SCATTER:
        result = PyList_GetItem(objects, 0);
        break;
    case HBM_GATHER:
    case HBM_ALLGATHER:
    case HBM_ALLTOALL:
        result = count ? objects : Py_None;
        break;
    default:
        count = e->operation == HBM_SCAN ? rank + 1 : e->operation == HBM_EXSCAN ? rank : count;
        if (count)
            return reduced(objects, count, op);
    }
    Py_XINCREF(result);
    return result;
}

/* Has the others hear that this rank does not come; its own error stays. */
static void leave(const exchange *e)
{
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    PyObject *left = PyObject_CallMethod(e->self, "_abandon", NULL);
    Py_XDECREF(left);
    PyErr_Restore(kind, error, trace);
}

static PyObject *do_call(exchange *e, PyObject *object, PyObject *op)
{
    PyObject *objects = NULL, *result = NULL;
    if (e->sent)
        pickle_all(e, object);
    int done = exchange_blocks(e);
    if (done && something_follows(e))
        done = follow(e);
    else if (done && e->moves == HBM_GATHER)
        done = gather_nothing(e);
    if (e->gives_up)
        leave(e);
    if (done && e->error[0]) {
        PyErr_Restore(e->error[0], e->error[1], e->error[2]);
        memset(e->error, 0, sizeof e->error);
    } else if (done) {
        objects = load_all(e);
    }
    if (objects)
        result = e->moves == HBM_BCAST && e->sent ? copy_of_own(e, object)
                                                  : result_of(e, objects, op);
    Py_XDECREF(objects);
    return result;
}

/* Sets how many blocks this rank sends and receives. */
static void count_blocks(exchange *e)
{
    const hbm_shape *shape = shape_of(e->moves);
    int n = e->comm->size, is_root = e->comm->rank == e->root;
    e->sent = shape->from_root && !is_root ? 0 : shape->sends_each ? n : 1;
    e->received = shape->to_root && !is_root ? 0 : shape->receives_each ? n : 1;
    if (e->moves == HBM_BCAST && is_root)
        e->received = 0;
}

int hbm_serves_objects(const hbm_comm *comm, int root)
{
    return comm && root >= 0 && root < comm->size;
}

PyObject *hbm_call_with_object(hbm_comm *comm, int operation, PyObject *name, PyObject *self,
                               PyObject *object, PyObject *op, int root)
{
    message messages[FEW] = {0};
    head heads[FEW];
    PyObject *long_ones[FEW] = {0}, *result = NULL;
    exchange e = {.comm = comm, .self = self, .name = name, .operation = operation,
                  .moves = moves_of(operation), .root = root, .is_standard = is_standard(),
                  .messages = messages, .heads = heads, .long_ones = long_ones};
    count_blocks(&e);
    size_t most = (size_t)(e.sent + e.received);
    if (most > FEW) {
        e.messages = calloc(most, sizeof *e.messages);
        e.heads = calloc(most, sizeof *e.heads);
        e.long_ones = calloc(most, sizeof *e.long_ones);
    }
    e.blocks = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(most * BLOCK));
    if (e.messages && e.heads && e.long_ones && e.blocks)
        result = do_call(&e, object, op);
    else
        PyErr_NoMemory();
    for (int i = 0; e.messages && i < e.sent; i++)
        drop_message(&e.messages[i]);
    for (int i = 0; e.long_ones && i < e.received; i++)
        Py_XDECREF(e.long_ones[i]);
    for (int i = 0; i < 3; i++)
        Py_XDECREF(e.error[i]);
    if (most > FEW) {
        free(e.messages);
        free(e.heads);
        free(e.long_ones);
    }
    Py_XDECREF(e.blocks);
    return result;
}
