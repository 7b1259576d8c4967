/* The gate's clock, while the driver stops the rank between the clock's reading and `stopped`'s. */
#define _GNU_SOURCE
#include <time.h>
static int stopping_clock(clockid_t which, struct timespec *t);
#define clock_gettime stopping_clock
#include "gate.c"

static long clock_now = 1000, stops = 3;

static int stopping_clock(clockid_t which, struct timespec *t) {
    (void)which;
    t->tv_sec = 0;
    t->tv_nsec = clock_now;
    if (stops-- > 0) { /* it is stopped here for 700 ns */
        clock_now += 700;
        page->stopped += 700;
    }
    return 0;
}

int main(void) {
    page = calloc(1, sizeof *page);
    uint64_t read = now();
    printf("%d stops, at %d ns\n", (int)(3 - stops - 1), (int)read);
    return read != 1000;
}
