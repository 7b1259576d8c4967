/* Threads complete operations of one queue, some themselves and some by the worker: one at a time, and
   those of a thread in their order. Built with ThreadSanitizer: what the operations touch has no lock. */
#include "groups/queue.h"

#include <cstdio>
#include <future>
#include <stdexcept>
#include <vector>

static constexpr int THREADS = 4, ROUNDS = 2000;

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

/* Three of four operations run in this thread, unless others are before them. */
static void use(hbmcomm::Queue &queue, int thread)
{
    unsigned drawn = thread + 1;
    for (int number = 1; number <= ROUNDS; number++) {
        drawn = drawn * 1103515245 + 12345;
        if (drawn >> 16 & 3 && queue.enter()) {
            operate(thread, number);
            queue.leave();
        } else {
            std::promise<void> ended;
            queue.push([thread, number, &ended] {
                operate(thread, number);
                ended.set_value();
            });
            ended.get_future().wait(); /* so that the queue is empty again and again */
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
