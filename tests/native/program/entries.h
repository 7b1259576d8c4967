/* Single entries, for the reference. */
#ifndef HBMCOMM_ENTRIES_H
#define HBMCOMM_ENTRIES_H

#include "core_test.h"

/* The family decides which field is in use; a complex number has two parts. */
typedef struct {
    uint64_t u;
    float f[2];
    double d[2];
    long double l[2];
} number;

typedef enum { SIGNED, UNSIGNED, FLOAT, DOUBLE, LONG, HALF, PAIR } family;

family family_of(int dtype);
number load(int dtype, const unsigned char *from);
void store(int dtype, number n, unsigned char *to);
void make_entry(int dtype, uint64_t bits, unsigned char *to);
number reduce(const hbm_call *call, number a, number b);
void reduce_pair(const hbm_call *call, unsigned char *to, const unsigned char *other);
int same_entry(int dtype, const unsigned char *entry, const unsigned char *expected);

#endif
