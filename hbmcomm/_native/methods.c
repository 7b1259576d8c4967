/* Collectives as methods in C: calls on plain NumPy arrays reach the core without a line of Python.

   A method replaces one of mpi4py's functions and has its signature; calls that do not fit it get
   their error from that function. `self._handle` is the address of the core's state; 0: there is
   none. A call that the core did not do goes on in self._again(status, name, argument, ...).

   A method that starts an operation does so in C, as its last step, and keeps what the operation
   needs: from then on no Python code runs, in which a signal's handler could raise. Where the core
   cannot start it from plain arrays, self._starting(status, name, argument, ...) returns a tuple
   that says how: the address of an hbm_plan and what keeps it alive, or a request and functions in C
   that start it. Instead of a request it may have None, and then the last function returns it. The
   Start of a plan asks plan._starting(status).

   No other files of the core but those of objects.h know Python. They use the stable ABI of Python
   3.11; vectorcall is part of it from 3.12 on, and works alike in 3.11. */
#include "objects.h"

#include "comm/comm.h"

#include <stddef.h>
#include <structmember.h>

#ifndef Py_TPFLAGS_HAVE_VECTORCALL
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
#endif
#define IS_COUNT_OF_ARGUMENTS (~((size_t)1 << (8 * sizeof(size_t) - 1)))
#define MOST 5 /* parameters, with self */
#define MOST_REDUCTIONS 32
#define MOST_DATATYPES 64
#define FEW_PARTS 64 /* of an array, which fit on the stack */

typedef struct {
    PyObject_HEAD
    PyObject *(*call)(PyObject *, PyObject *const *, size_t, PyObject *);
    PyObject *function, *name, *qualified, *module, *doc, *call_name;
    PyObject *request; /* a class, or None: it does the call */
    PyObject *parameters[MOST], *defaults[MOST]; /* a default is NULL where there is none */
    int count, op, root; /* of parameters; where the last two are, or 0 */
    int operation, takes_object; /* in the place of buffers */
} method;

static PyObject *handle_name, *again_name, *starting_name, *operation_name, *kept_name, *quick_name;
static PyObject *bound_method;
static PyObject *in_flight; /* requests and plans by the numbers of their operations */
static uintptr_t reductions[MOST_REDUCTIONS];
static int reduction_count;
static uintptr_t datatypes[MOST_DATATYPES];
static int dtypes[MOST_DATATYPES], datatype_count; /* dtypes of the core, by datatype */

static PyObject *new_reference(PyObject *object)
{
    Py_INCREF(object);
    return object;
}

/* ---- arguments ---- */

/* Where the parameter of a name is; names in a program's text are one object with it. */
static int parameter(const method *m, PyObject *name)
{
    for (int i = 0; i < m->count; i++)
        if (m->parameters[i] == name)
            return i;
    for (int i = 0; i < m->count; i++)
        if (PyUnicode_Compare(m->parameters[i], name) == 0)
            return i;
    return -1;
}

/* Whether a call fits the parameters; `bound` borrows its arguments. */
static int bind(const method *m, PyObject *const *arguments, Py_ssize_t given, PyObject *names,
                PyObject **bound)
{
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    if (given > m->count)
        return 0;
    for (int i = 0; i < m->count; i++)
        bound[i] = i < given ? arguments[i] : NULL;
    for (Py_ssize_t k = 0; k < named; k++) {
        int i = parameter(m, PyTuple_GetItem(names, k));
        if (i < 0 || bound[i])
            return 0;
        bound[i] = arguments[given + k];
    }
    for (int i = 0; i < m->count; i++)
        if (!bound[i] && !(bound[i] = m->defaults[i]))
            return 0;
    return 1;
}

static PyObject *refuse(const method *m, PyObject *const *arguments, Py_ssize_t given,
                        PyObject *names)
{
    PyErr_Clear();
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    PyObject *positional = PyTuple_New(given), *others = PyDict_New(), *result = NULL;
    for (Py_ssize_t i = 0; positional && i < given; i++)
        PyTuple_SetItem(positional, i, new_reference(arguments[i]));
    int failed = !positional || !others;
    for (Py_ssize_t k = 0; !failed && k < named; k++)
        failed = PyDict_SetItem(others, PyTuple_GetItem(names, k), arguments[given + k]);
    if (!failed)
        result = PyObject_Call(m->function, positional, others); /* raises its own error */
    Py_XDECREF(positional);
    Py_XDECREF(others);
    return result;
}

static int root_of(const method *m, PyObject *const *bound)
{
    if (!m->root)
        return 0;
    long root = PyLong_AsLong(bound[m->root]);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return -1; /* the core refuses it, and `_again` finds out why */
    }
    return root > INT_MAX || root < 0 ? -1 : (int)root;
}

static int reduction_of(const method *m, PyObject *const *bound)
{
    for (int i = 0; m->op && i < reduction_count; i++)
        if ((uintptr_t)bound[m->op] == reductions[i])
            return i;
    return -1;
}

/* The array of [array, datatype], if that is the datatype of its entries; else the argument as it
   is. A new reference: another thread may change the list during the call. */
static PyObject *without_datatype(PyObject *spec)
{
    PyObject *array = NULL, *datatype = NULL;
    uintptr_t address;
    uint64_t entries;
    int dtype;
    if (PyList_CheckExact(spec) && PyList_Size(spec) == 2) {
        array = PyList_GetItem(spec, 0);
        datatype = PyList_GetItem(spec, 1);
    } else if (PyTuple_CheckExact(spec) && PyTuple_Size(spec) == 2) {
        array = PyTuple_GetItem(spec, 0);
        datatype = PyTuple_GetItem(spec, 1);
    }
    if (array && (dtype = hbm_dtype_of(datatype)) >= 0
        && hbm_read_array((uintptr_t)array, 0, &address, &entries) == dtype)
        return new_reference(array);
    return new_reference(spec);
}

int hbm_is_list(PyObject *spec) { return PyList_CheckExact(spec) || PyTuple_CheckExact(spec); }

int hbm_dtype_of(PyObject *datatype)
{
    for (int i = 0; i < datatype_count; i++)
        if ((uintptr_t)datatype == datatypes[i])
            return dtypes[i];
    return -1;
}

/* ---- calls ---- */

static uint64_t run_on(const method *m, hbm_comm *comm, PyObject *const *bound, uintptr_t send,
                       uintptr_t recv, PyObject *request)
{
    int root = root_of(m, bound), reduction = reduction_of(m, bound);
    uint64_t status = HBM_UNREADABLE;
    hbm_call c;
    Py_BEGIN_ALLOW_THREADS
    if (hbm_read_call(comm, m->operation, send, recv, reduction, root, &c))
        status = request ? hbm_start_once(comm, &c, (uintptr_t)request)
                         : (uint64_t)hbm_run(comm, &c);
    Py_END_ALLOW_THREADS
    return status;
}

/* Does the call, or starts it for a request; a status, or the number of the operation. `bound` are
   arguments whose references are the caller's; what keeps the memory of an array that is not NumPy's
   takes its place. */
static uint64_t run(const method *m, hbm_comm *comm, PyObject **bound, PyObject *request)
{
    uintptr_t arrays[] = {m->count > 1 ? (uintptr_t)bound[1] : 0,
                          m->count > 2 ? (uintptr_t)bound[2] : 0};
    uint64_t status = run_on(m, comm, bound, arrays[0], arrays[1], request);
    hbm_view views[2];
    int opened = 0;
    for (int i = 1; status == HBM_UNREADABLE && comm && i <= 2 && i < m->count; i++) {
        int is_array = i != m->root && i != m->op;
        PyObject *memory = is_array ? hbm_open_array(bound[i], &views[i - 1]) : NULL;
        if (!memory)
            continue;
        Py_DECREF(bound[i]);
        bound[i] = memory;
        arrays[i - 1] = (uintptr_t)&views[i - 1];
        opened = 1;
    }
    return opened ? run_on(m, comm, bound, arrays[0], arrays[1], request) : status;
}

/* Takes a reference to `object`; 0 where there is none. */
static int put(PyObject *tuple, Py_ssize_t *at, PyObject *object)
{
    return object && PyTuple_SetItem(tuple, (*at)++, object) == 0;
}

static PyObject *go_on(const method *m, PyObject *name, uint64_t status, PyObject *const *bound)
{
    PyObject *then = PyObject_GetAttr(bound[0], name);
    int named = m->call_name != Py_None; /* else it is a plan's */
    PyObject *arguments = then ? PyTuple_New(m->count + named) : NULL, *result = NULL;
    Py_ssize_t at = 0;
    int complete = arguments && put(arguments, &at, PyLong_FromUnsignedLongLong(status))
                   && (!named || put(arguments, &at, new_reference(m->call_name)));
    for (int i = 1; complete && i < m->count; i++)
        complete = put(arguments, &at, new_reference(bound[i]));
    if (complete)
        result = PyObject_Call(then, arguments, NULL);
    Py_XDECREF(arguments);
    Py_XDECREF(then);
    return result;
}

static hbm_comm *state_of(PyObject *self)
{
    PyObject *handle = PyObject_GetAttr(self, handle_name);
    hbm_comm *comm = handle ? PyLong_AsVoidPtr(handle) : NULL;
    Py_XDECREF(handle);
    return comm;
}

/* ---- operations in flight ---- */

/* A request or plan of an operation that has started, with what it needs. Where there is no memory
   to record it, it stays for ever. */
static void keep(PyObject *request, PyObject *kept, uint64_t operation)
{
    PyObject *number = PyLong_FromUnsignedLongLong(operation);
    if (!number || !kept || PyDict_SetItem(in_flight, number, request)
        || (kept != request && PyObject_SetAttr(request, kept_name, kept))
        || PyObject_SetAttr(request, operation_name, number)) {
        PyErr_Clear();
        Py_INCREF(request);
        Py_XINCREF(kept);
    }
    Py_XDECREF(number);
}

/* Nobody waits for it any more: MPI has returned its status, or it is complete and the program has
   dropped its request. */
static int is_left(PyObject *request, uint64_t operation)
{
    int over = hbm_is_over(operation);
    if (over || Py_REFCNT(request) > 1)
        return over;
    Py_INCREF(request); /* another thread may come here too */
    Py_BEGIN_ALLOW_THREADS
    over = hbm_test_once(operation, (uintptr_t)request) != HBM_PENDING;
    Py_END_ALLOW_THREADS
    Py_DECREF(request);
    return over;
}

/* Before another operation starts: runs handlers of signals that have come, and forgets operations
   that nobody waits for, now and then. Returns whether the start may go on. */
static int may_start(void)
{
    static Py_ssize_t most = 1; /* looks for them where more than this are in flight */
    if (PyErr_CheckSignals()) /* else it could be raised, and lost, where an array is freed below */
        return 0;
    if (PyDict_Size(in_flight) <= most)
        return 1;
    PyObject *numbers = PyDict_Keys(in_flight);
    for (Py_ssize_t i = 0; numbers && i < PyList_Size(numbers); i++) {
        PyObject *number = PyList_GetItem(numbers, i);
        PyObject *request = PyDict_GetItemWithError(in_flight, number);
        uint64_t operation = PyLong_AsUnsignedLongLong(number);
        if (request && is_left(request, operation)) {
            hbm_drop_once(operation);
            PyDict_DelItem(in_flight, number);
        }
        PyErr_Clear();
    }
    Py_XDECREF(numbers);
    PyErr_Clear();
    most = 2 * PyDict_Size(in_flight) + 1;
    return 1;
}

/* ---- starts ---- */

static uint64_t start_plan(PyObject *address, PyObject *request)
{
    uintptr_t plan = (uintptr_t)PyLong_AsVoidPtr(address);
    uint64_t started;
    Py_BEGIN_ALLOW_THREADS
    started = hbm_start_plan(plan, (uintptr_t)request);
    Py_END_ALLOW_THREADS
    return started;
}

/* Calls functions in C one after the other; the last one's result. */
static PyObject *call_all(PyObject *functions, Py_ssize_t from)
{
    PyObject *result = new_reference(Py_None);
    for (Py_ssize_t i = from; result && i < PyTuple_Size(functions); i++) {
        Py_DECREF(result);
        result = PyObject_CallNoArgs(PyTuple_GetItem(functions, i));
    }
    return result;
}

/* Goes on with a start for which the core has returned `started`. `request` is that of the call, or
   the plan. Returns what the start returns; `started` is what the core returned in the end. */
static PyObject *go_on_starting(const method *m, PyObject *const *bound, PyObject *request,
                                uint64_t *started)
{
    while (*started && *started <= HBM_LAST_STATUS) {
        PyObject *then = go_on(m, starting_name, *started, bound);
        PyObject *first = then ? PyTuple_GetItem(then, 0) : NULL;
        if (!first) {
            Py_XDECREF(then);
            return NULL;
        }
        if (!PyLong_Check(first)) {
            PyObject *result = call_all(then, 1);
            if (result && first != Py_None) {
                Py_DECREF(result);
                result = new_reference(first);
            }
            Py_DECREF(then);
            return result;
        }
        *started = start_plan(first, request);
        if (*started > HBM_LAST_STATUS)
            keep(request, PyTuple_GetItem(then, 1), *started);
        Py_DECREF(then);
    }
    return new_reference(request);
}

/* What a start returns for which the core has returned `started`: its request, which then keeps the
   objects that the operation needs, or what Python returns. Takes over the request. */
static PyObject *request_of(const method *m, PyObject *const *bound, PyObject *request,
                            uint64_t started, PyObject *const *needed, int count)
{
    if (started > HBM_LAST_STATUS) {
        PyObject *kept = PyTuple_New(count);
        for (int i = 0; i < count; i++) { /* without memory for a tuple they stay for ever */
            Py_INCREF(needed[i]);
            if (kept)
                PyTuple_SetItem(kept, i, needed[i]);
        }
        keep(request, kept, started);
        Py_XDECREF(kept);
        return request;
    }
    PyObject *result = go_on_starting(m, bound, request, &started);
    Py_DECREF(request);
    return result;
}

/* `plain` are the arguments as the core reads them. */
static PyObject *start(const method *m, hbm_comm *comm, PyObject *const *bound, PyObject **plain)
{
    PyObject *request = may_start() ? PyObject_CallNoArgs(m->request) : NULL;
    if (!request)
        return NULL;
    uint64_t started = run(m, comm, plain, request);
    return request_of(m, bound, request, started, plain, m->count);
}

static void set_number(PyObject *object, PyObject *name, long value)
{
    PyObject *number = PyLong_FromLong(value); /* small ones are there already */
    if (!number || PyObject_SetAttr(object, name, number))
        PyErr_Clear();
    Py_XDECREF(number);
}

/* plan.Start() */
static PyObject *start_again(PyObject *self, PyObject *const *arguments, size_t given,
                             PyObject *names)
{
    const method *m = (const method *)self;
    Py_ssize_t positional = (Py_ssize_t)(given & IS_COUNT_OF_ARGUMENTS);
    PyObject *plan;
    if (!bind(m, arguments, positional, names, &plan))
        return refuse(m, arguments, positional, names);
    PyObject *quick = may_start() ? PyObject_GetAttr(plan, quick_name) : NULL;
    if (!quick)
        return NULL;
    uint64_t started = start_plan(quick, plan);
    Py_DECREF(quick);
    if (started > HBM_LAST_STATUS)
        keep(plan, plan, started);
    int slowly = started && started <= HBM_LAST_STATUS;
    PyObject *result = go_on_starting(m, &plan, plan, &started);
    if (!result)
        return NULL;
    Py_DECREF(result);
    if (started && started <= HBM_LAST_STATUS) /* functions have started it */
        return new_reference(Py_None);
    set_number(plan, quick_name, 0);
    if (slowly && !started)
        set_number(plan, operation_name, -1);
    return new_reference(Py_None);
}

static PyObject *call_plain(const method *m, hbm_comm *comm, PyObject *const *bound)
{
    PyObject *plain[MOST], *result;
    for (int i = 0; i < m->count; i++)
        plain[i] = (i == 1 || i == 2) && i != m->root && hbm_is_list(bound[i])
                       ? without_datatype(bound[i]) : new_reference(bound[i]);
    if (m->request == Py_None) {
        uint64_t status = run(m, comm, plain, NULL);
        result = status ? go_on(m, again_name, status, bound) : new_reference(Py_None);
    } else {
        result = start(m, comm, bound, plain);
    }
    for (int i = 0; i < m->count; i++)
        Py_DECREF(plain[i]);
    return result;
}

static int has_parts(const method *m)
{
    return m->operation >= HBM_GATHERV && m->operation <= HBM_ALLTOALLV;
}

/* As run(), of a call of which an array has parts. `kept`: two objects that it needs, or NULL. */
static uint64_t run_with_parts(const method *m, hbm_comm *comm, PyObject *const *bound,
                               PyObject *request, hbm_part *parts, PyObject **kept)
{
    uint64_t status = HBM_UNREADABLE;
    hbm_call c;
    int root = root_of(m, bound);
    if (hbm_read_vectors(comm, m->operation, bound[1], bound[2], root, parts, kept, &c)) {
        Py_BEGIN_ALLOW_THREADS
        status = request ? hbm_start_once(comm, &c, (uintptr_t)request)
                         : (uint64_t)hbm_run(comm, &c);
        Py_END_ALLOW_THREADS
    }
    return status;
}

static PyObject *start_with_parts(const method *m, hbm_comm *comm, PyObject *const *bound)
{
    PyObject *kept[2] = {NULL, NULL}, *result = NULL;
    PyObject *parts = PyBytes_FromStringAndSize(NULL, 2 * comm->size * (Py_ssize_t)sizeof(hbm_part));
    PyObject *request = parts && may_start() ? PyObject_CallNoArgs(m->request) : NULL;
    if (request) {
        hbm_part *at = (hbm_part *)PyBytes_AsString(parts);
        uint64_t started = run_with_parts(m, comm, bound, request, at, kept);
        PyObject *needed[] = {bound[0], parts, kept[0] ? kept[0] : Py_None,
                              kept[1] ? kept[1] : Py_None};
        result = request_of(m, bound, request, started, needed, 4);
    }
    Py_XDECREF(parts);
    Py_XDECREF(kept[0]);
    Py_XDECREF(kept[1]);
    return result;
}

static PyObject *call_with_parts(const method *m, hbm_comm *comm, PyObject *const *bound)
{
    hbm_part few[2 * FEW_PARTS], *parts = few;
    PyObject *kept[2] = {NULL, NULL};
    uint64_t status = HBM_UNREADABLE;
    if (comm->size > FEW_PARTS)
        parts = PyMem_Malloc(2 * (size_t)comm->size * sizeof *parts);
    if (parts)
        status = run_with_parts(m, comm, bound, NULL, parts, kept);
    if (parts != few)
        PyMem_Free(parts);
    Py_XDECREF(kept[0]);
    Py_XDECREF(kept[1]);
    return status ? go_on(m, again_name, status, bound) : new_reference(Py_None);
}

static PyObject *call(PyObject *self, PyObject *const *arguments, size_t given, PyObject *names)
{
    const method *m = (const method *)self;
    Py_ssize_t positional = (Py_ssize_t)(given & IS_COUNT_OF_ARGUMENTS);
    PyObject *bound[MOST];
    if (!bind(m, arguments, positional, names, bound))
        return refuse(m, arguments, positional, names);
    hbm_comm *comm = state_of(bound[0]);
    if (!comm && PyErr_Occurred())
        return NULL;
    if (m->takes_object) {
        int root = root_of(m, bound);
        if (!hbm_serves_objects(comm, root))
            return refuse(m, arguments, positional, names);
        return hbm_call_with_object(comm, m->operation, m->call_name, bound[0], bound[1],
                                    m->op ? bound[m->op] : NULL, root);
    }
    if (has_parts(m) && comm)
        return m->request == Py_None ? call_with_parts(m, comm, bound)
                                     : start_with_parts(m, comm, bound);
    return call_plain(m, comm, bound);
}

/* method.__call__ */
static PyObject *call_with_tuple(PyObject *self, PyObject *positional, PyObject *others)
{
    PyObject *arguments[2 * MOST] = {0}, *names = NULL, *name, *value, *result;
    Py_ssize_t given = PyTuple_Size(positional), named = 0, at = 0;
    if (given + (others ? PyDict_Size(others) : 0) > 2 * MOST)
        return PyObject_Call(((method *)self)->function, positional, others);
    for (Py_ssize_t i = 0; i < given; i++)
        arguments[i] = PyTuple_GetItem(positional, i);
    if (others && !(names = PyTuple_New(PyDict_Size(others))))
        return NULL;
    while (others && PyDict_Next(others, &at, &name, &value)) {
        PyTuple_SetItem(names, named, new_reference(name));
        arguments[given + named++] = value;
    }
    result = ((method *)self)->call(self, arguments, (size_t)given, names);
    Py_XDECREF(names);
    return result;
}

/* ---- the type ---- */

static PyObject *bind_instance(PyObject *self, PyObject *instance, PyObject *owner)
{
    (void)owner;
    if (instance)
        return PyObject_CallFunctionObjArgs(bound_method, self, instance, NULL);
    return new_reference(self);
}

static PyObject *describe(PyObject *self)
{
    return PyUnicode_FromFormat("<method %U of the core>", ((method *)self)->qualified);
}

static void drop(PyObject *self)
{
    method *m = (method *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject *owned[] = {m->function, m->name, m->qualified, m->module, m->doc, m->call_name,
                         m->request};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        Py_XDECREF(owned[i]);
    for (int i = 0; i < MOST; i++) {
        Py_XDECREF(m->parameters[i]);
        Py_XDECREF(m->defaults[i]);
    }
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(method, call), READONLY, NULL},
    {"__wrapped__", T_OBJECT, offsetof(method, function), READONLY, NULL},
    {"__name__", T_OBJECT, offsetof(method, name), READONLY, NULL},
    {"__qualname__", T_OBJECT, offsetof(method, qualified), READONLY, NULL},
    {"__module__", T_OBJECT, offsetof(method, module), READONLY, NULL},
    {"__doc__", T_OBJECT, offsetof(method, doc), READONLY, NULL},
    {0},
};
static PyType_Slot slots[] = {
    {Py_tp_call, call_with_tuple}, {Py_tp_descr_get, bind_instance}, {Py_tp_repr, describe},
    {Py_tp_dealloc, drop},         {Py_tp_members, members},         {0, NULL},
};
static PyType_Spec spec = {
    .name = "hbmcomm.method",
    .basicsize = sizeof(method),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .slots = slots,
};

/* ---- for Python ---- */

static int fill(method *m, PyObject *function)
{
    PyObject *code = PyObject_GetAttrString(function, "__code__"), *names = NULL, *count = NULL;
    PyObject *defaults = PyObject_GetAttrString(function, "__defaults__");
    if (code) {
        names = PyObject_GetAttrString(code, "co_varnames");
        count = PyObject_GetAttrString(code, "co_argcount");
    }
    m->name = PyObject_GetAttrString(function, "__name__");
    m->qualified = PyObject_GetAttrString(function, "__qualname__");
    m->module = PyObject_GetAttrString(function, "__module__");
    m->doc = PyObject_GetAttrString(function, "__doc__");
    m->count = count ? (int)PyLong_AsLong(count) : 0;
    int complete = names && defaults && m->doc && !PyErr_Occurred() && m->count <= MOST;
    int with = complete && defaults != Py_None ? (int)PyTuple_Size(defaults) : 0;
    for (int i = 0; complete && i < m->count; i++) {
        PyObject *name = m->parameters[i] = new_reference(PyTuple_GetItem(names, i));
        int k = i - (m->count - with);
        if (k >= 0)
            m->defaults[i] = new_reference(PyTuple_GetItem(defaults, k));
        if (PyUnicode_CompareWithASCIIString(name, "root") == 0)
            m->root = i;
        if (PyUnicode_CompareWithASCIIString(name, "op") == 0)
            m->op = i;
    }
    Py_XDECREF(code);
    Py_XDECREF(names);
    Py_XDECREF(count);
    Py_XDECREF(defaults);
    return complete;
}

static PyObject *type;

static int prepare(void)
{
    PyObject *types = PyImport_ImportModule("types");
    bound_method = types ? PyObject_GetAttrString(types, "MethodType") : NULL;
    Py_XDECREF(types);
    handle_name = PyUnicode_InternFromString("_handle");
    again_name = PyUnicode_InternFromString("_again");
    starting_name = PyUnicode_InternFromString("_starting");
    operation_name = PyUnicode_InternFromString("_operation");
    kept_name = PyUnicode_InternFromString("_kept");
    quick_name = PyUnicode_InternFromString("_quick");
    if (bound_method && handle_name && again_name && starting_name && operation_name && kept_name
        && quick_name)
        type = PyType_FromSpec(&spec);
    return type != NULL;
}

static int add(PyObject *owner, PyObject *function, int operation, PyObject *name,
               PyObject *request)
{
    method *m = NULL;
    if (!type && !prepare())
        return 0;
    if (!(m = (method *)PyType_GenericAlloc((PyTypeObject *)type, 0)))
        return 0;
    m->call = operation < 0 ? start_again : call;
    m->takes_object = operation >= HBM_OBJECTS;
    m->operation = m->takes_object ? operation - HBM_OBJECTS : operation;
    m->function = new_reference(function);
    m->call_name = new_reference(name);
    m->request = new_reference(request);
    int added = fill(m, function) && PyObject_SetAttr(owner, m->name, (PyObject *)m) == 0;
    Py_DECREF(m);
    return added;
}

void hbm_reductions(const uintptr_t *objects, int count)
{
    reduction_count = count < MOST_REDUCTIONS ? count : MOST_REDUCTIONS;
    memcpy(reductions, objects, sizeof *reductions * (size_t)reduction_count);
}

void hbm_datatypes(const uintptr_t *objects, const int *codes, int count)
{
    datatype_count = count < MOST_DATATYPES ? count : MOST_DATATYPES;
    memcpy(datatypes, objects, sizeof *datatypes * (size_t)datatype_count);
    memcpy(dtypes, codes, sizeof *dtypes * (size_t)datatype_count);
}

void hbm_keep_in(uintptr_t dict)
{
    PyGILState_STATE state = PyGILState_Ensure();
    in_flight = new_reference((PyObject *)dict);
    PyGILState_Release(state);
}

int hbm_add_method(uintptr_t owner, uintptr_t function, int operation, uintptr_t name,
                   uintptr_t request)
{
    PyGILState_STATE state = PyGILState_Ensure(); /* cffi has released Python's lock */
    int added = add((PyObject *)owner, (PyObject *)function, operation, (PyObject *)name,
                    (PyObject *)request);
    if (!added)
        PyErr_Print();
    PyGILState_Release(state);
    return added;
}
