/* The arithmetic of a parameter server, on plain pointers. It knows no communicator: flags say what
   is complete, and its caller waits for them. Plain declarations only: cffi reads this file too. */

enum ps_optimizer_code { PS_SGD, PS_MOMENTUM, PS_NESTEROV, PS_ADAM, PS_OPTIMIZERS };

/* The coefficients of one step; update.c has the formulas. `scale` multiplies the sum of all
   gradients; PS_MOMENTUM and PS_NESTEROV use `decay1` as their momentum. */
typedef struct {
    int32_t code;
    float scale, rate, keep, decay1, rest1, decay2, rest2, root, epsilon;
} ps_optimizer;

/* Part of a key that one rank owns: bytes from `offset` on in the flat arrays of workers, and from
   `state` on in the arrays of its owner alone. The owner reads and updates the weights at `master`,
   an address. */
typedef struct {
    uint64_t key, offset, bytes, state;
    uintptr_t master;
} ps_chunk;

/* The flat arrays of a worker. `ready` has a flag for each key: the last step for which its gradient
   is complete. `weights` 0: its owner does not write there. */
typedef struct {
    uintptr_t gradients, weights, ready;
} ps_worker;

typedef struct {
    uintptr_t from, to;
    uint64_t bytes;
} ps_copy;

/* An owner's part in a step. */
typedef struct {
    uint64_t step; /* from 1 on */
    ps_optimizer optimizer;
    const ps_worker *workers; /* in the order in which their gradients are added */
    uint64_t worker_count;
    const void **gradients;   /* room for the address of a chunk in each worker's gradients */
    const ps_chunk *chunks;   /* that this rank owns, in the order of its work */
    uint64_t chunk_count;
    uintptr_t first, second;  /* the state of the optimiser, from ps_chunk.state on; 0: none */
    uintptr_t sums;           /* room for a chunk; with `separate`, for all that it owns */
    int32_t separate;         /* all chunks of a key are added before the first is optimised */
    int32_t streaming;        /* weights bypass the caches on their way to workers */
} ps_step;

/* Updates chunks from number `from` on, until one of which some worker's gradient is not complete;
   returns the number of that chunk, or `chunk_count`. */
uint64_t ps_update(const ps_step *step, uint64_t from);

void ps_pull(const ps_copy *copies, uint64_t count, int streaming);

/* One step of an optimiser on n floats: adds the gradients in their order. `sum` is room for n
   floats, and may be the first gradient; `first` and `second` are the optimiser's state. */
void ps_optimize(const ps_optimizer *how, const void *const *gradients, uint64_t count, float *sum,
                 float *weights, float *first, float *second, uint64_t n);
