// Work for the threads of an OpenMP parallel region.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace paramixer {

int max_threads();    // of the next parallel region
int thread_number();  // of the calling thread
int thread_count();   // of the current parallel region

// Hands out work to the threads of a parallel region. Each thread begins with a range of its own, the same one for
// every factor, so that it finds in its cache the rows it wrote itself; then it helps the others.
class WorkQueue {
public:
    explicit WorkQueue(int threads) : ranges_(threads) {}

    // body(0), ..., body(count - 1). Every thread of the region calls this; all wait for the last one.
    template <class Body>
    void run(int64_t count, const Body& body) {
        const int self = thread_number(), threads = thread_count();
        const int64_t turn = ranges_[self].turn++ % 2;
        // The other turn is over for all threads, and its next one begins after the barrier.
        ranges_[self].taken[1 - turn] = 0;
        for (int i = 0; i < threads; ++i) {
            const int owner = (self + i) % threads;
            const int64_t begin = count * owner / threads, end = count * (owner + 1) / threads;
            std::atomic<int64_t>& taken = ranges_[owner].taken[turn];
            for (int64_t next; (next = begin + taken.fetch_add(1, std::memory_order_relaxed)) < end;) body(next);
        }
#pragma omp barrier
    }

private:
    struct alignas(64) Range {
        std::atomic<int64_t> taken[2] = {{0}, {0}};
        int64_t turn = 0;
    };
    std::vector<Range> ranges_;
};

}  // namespace paramixer
