/* One bit for each step of a heap's range: whether it is populated. The caller locks it. */
#ifndef HBMCOMM_BITMAP_H
#define HBMCOMM_BITMAP_H

#include <stdint.h>

#define BITS 64u

static inline uint64_t words_for(uint64_t steps) { return (steps + BITS - 1) / BITS; }

/* The bits of a word that are in [from, to), given that the word begins at bit `base`. */
static inline uint64_t bits_between(uint64_t base, uint64_t from, uint64_t to)
{
    uint64_t mask = UINT64_MAX;
    if (from > base)
        mask &= UINT64_MAX << (from - base);
    if (to < base + BITS)
        mask &= UINT64_MAX >> (base + BITS - to);
    return mask;
}

static inline uint64_t count_steps(const uint64_t *words, uint64_t from, uint64_t to)
{
    uint64_t steps = 0;
    for (uint64_t base = from & ~(uint64_t)(BITS - 1); base < to; base += BITS)
        steps += (uint64_t)__builtin_popcountll(words[base / BITS] & bits_between(base, from, to));
    return steps;
}

static inline void mark_steps(uint64_t *words, uint64_t from, uint64_t to, int set)
{
    for (uint64_t base = from & ~(uint64_t)(BITS - 1); base < to; base += BITS) {
        uint64_t mask = bits_between(base, from, to);
        words[base / BITS] = set ? words[base / BITS] | mask : words[base / BITS] & ~mask;
    }
}

/* The first step in [from, to) with a bit that equals `set`; `to` where there is none. */
static inline uint64_t find_step(const uint64_t *words, uint64_t from, uint64_t to, int set)
{
    for (uint64_t base = from & ~(uint64_t)(BITS - 1); base < to; base += BITS) {
        uint64_t word = set ? words[base / BITS] : ~words[base / BITS];
        word &= bits_between(base, from, to);
        if (word)
            return base + (uint64_t)__builtin_ctzll(word);
    }
    return to;
}

/* The step after the last one in [from, to) with such a bit; `from` where there is none. */
static inline uint64_t find_last_step(const uint64_t *words, uint64_t from, uint64_t to, int set)
{
    while (to > from) {
        uint64_t base = (to - 1) & ~(uint64_t)(BITS - 1);
        uint64_t word = set ? words[base / BITS] : ~words[base / BITS];
        word &= bits_between(base, from, to);
        if (word)
            return base + BITS - (uint64_t)__builtin_clzll(word);
        to = base > from ? base : from;
    }
    return from;
}

#endif
