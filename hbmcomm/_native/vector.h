/* Vector extensions: code that is compiled once for each, and which of them this CPU has. */
#ifndef HBMCOMM_VECTOR_H
#define HBMCOMM_VECTOR_H

/* Functions that compilers vectorise by themselves: the loader picks the clone for this CPU. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(HBM_ONE_CLONE)
#define HBM_VECTOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HBM_VECTOR
#endif

/* For code written per extension. Set when the core is loaded; tests switch extensions off. */
typedef struct {
    int avx, avx512f, f16c; /* x86 */
    int long_sve;           /* arm64: SVE with vectors longer than NEON's */
} hbm_extensions;

extern hbm_extensions hbm_cpu;

#endif
