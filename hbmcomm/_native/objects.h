/* Collectives of Python objects, for methods.c. */
#ifndef HBMCOMM_OBJECTS_H
#define HBMCOMM_OBJECTS_H

#define PY_SSIZE_T_CLEAN
#undef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "layout.h"

int hbm_serves_objects(const hbm_comm *comm, int root);

/* The call of mpi4py's of that operation and name. */
PyObject *hbm_call_with_object(hbm_comm *comm, int operation, PyObject *name, PyObject *self,
                               PyObject *object, PyObject *op, int root);

#endif
