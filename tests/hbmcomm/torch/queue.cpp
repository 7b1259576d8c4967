/* Threads complete operations of one queue, some themselves and some by the worker: one at a time, and
   those of a thread in their order. Callbacks of some call one more. Two threads close it at once.
   Built with ThreadSanitizer: what the operations touch has no lock. */
#include "queue.h"

#include <chrono>
#include <cstdio>
#include <future>
#include <stdexcept>
#include <string>
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

/* What a callback calls has run when its call returns. */
static void call_in_callback(hbmcomm::Queue &queue, int thread, int number)
{
    const hbmcomm::Queue::Callbacks calls(0);
    bool has_run = false;
    wrong += queue.enter();
    queue.push([&] { operate(thread, number); has_run = true; }, [] {});
    wrong += !has_run;
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
            const bool calls = drawn >> 18 & 1 && number < ROUNDS;
            std::promise<void> ended;
            queue.push([thread, number] { operate(thread, number); },
                       [&queue, thread, number, calls, &ended] {
                           if (calls)
                               call_in_callback(queue, thread, number + 1);
                           ended.set_value();
                       });
            ended.get_future().wait(); /* so that the queue is empty again and again */
            number += calls;
        }
    }
}

/* Callbacks of 1 and 2 are attached after 2 was called: what they call, a and b, comes before 3. */
static std::string order_with_callbacks()
{
    hbmcomm::Queue queue;
    std::string order;
    std::promise<void> pushed;
    uint64_t attached = 0;
    const auto callback = [&](char called) {
        const hbmcomm::Queue::Callbacks calls(attached);
        queue.push([&order, called] { order += called; }, [] {});
    };
    queue.push(
        [&] {
            pushed.get_future().wait();
            order += '1';
        },
        [&] { callback('a'); });
    queue.push([&] { order += '2'; }, [&] { callback('b'); });
    attached = hbmcomm::Queue::last_number();
    queue.push([&] { order += '3'; }, [] {});
    pushed.set_value();
    queue.close();
    return order;
}

int main()
{
    {
        hbmcomm::Queue queue;
        std::vector<std::thread> threads;
        for (int thread_number = 0; thread_number < THREADS; thread_number++)
            threads.emplace_back([&queue, thread_number] { use(queue, thread_number); });
        for (auto &thread : threads)
            thread.join();
        queue.push([] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }, [] {});
        std::thread beside([&queue] { queue.close(); });
        queue.close();
        beside.join();
        try {
            queue.enter();
            wrong++;
        } catch (const std::runtime_error &) {
        }
    }
    const std::string order = order_with_callbacks();
    std::printf("%d done, %d wrong, order %s\n", done, wrong, order.c_str());
    return done != THREADS * ROUNDS || wrong;
}
