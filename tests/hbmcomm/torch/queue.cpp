/* Threads complete operations of one queue, some at once and some later: one at a time, and those of
   a thread in their order. Built with ThreadSanitizer: what the operations touch has no lock. */
#include "groups/queue.h"

#include <cstdio>
#include <stdexcept>
#include <vector>

static constexpr int THREADS = 4, ROUNDS = 5000;

static volatile int spent;
static int done, inside, last[THREADS], wrong;

static void operate(int thread, int number)
{
    wrong += inside++ != 0 || number != last[thread] + 1;
    last[thread] = number;
    for (int i = 0; i < 300; i++) /* long enough to meet another thread */
        spent = spent + i;
    done++;
    inside--;
}

/* Three of four operations are complete when they return, unless others are before them. */
static void use(hbmcomm::Queue &queue, int thread)
{
    unsigned drawn = thread + 1;
    for (int number = 1; number <= ROUNDS; number++) {
        drawn = drawn * 1103515245 + 12345;
        if (drawn >> 16 & 3 && queue.enter()) {
            operate(thread, number);
            queue.leave();
        } else {
            queue.push([thread, number] { operate(thread, number); });
        }
    }
}

int main()
{
    {
        hbmcomm::Queue queue;
        std::vector<std::thread> threads;
        for (int each = 0; each < THREADS; each++)
            threads.emplace_back([&queue, each] { use(queue, each); });
        for (auto &thread : threads)
            thread.join();
        queue.close();
        try {
            queue.enter();
            wrong++;
        } catch (const std::runtime_error &) {
        }
    }
    std::printf("%d done, %d wrong\n", done, wrong);
    return done != THREADS * ROUNDS || wrong;
}
