/* Vector extensions: code that is compiled for several of them, and those that this CPU has. */
#ifndef HBMCOMM_VECTOR_H
#define HBMCOMM_VECTOR_H

/* For functions that compilers vectorise: the loader chooses the clone for this CPU. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(HBM_ONE_CLONE)
#define HBM_VECTOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HBM_VECTOR
#endif

/* For code that is written for one extension. Set when the core is loaded; tests clear fields. */
typedef struct {
    int avx, avx512f, f16c; /* x86 */
    int long_sve;           /* arm64: SVE with vectors longer than NEON's */
} hbm_extensions;

extern hbm_extensions hbm_cpu;

#endif
