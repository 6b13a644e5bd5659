// All sequences' tokens as one flat list of tiles, so that a batch of one keeps every core busy and padding costs
// nothing. The list depends on sizes alone, never on the number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "kernels.h"

namespace paramixer {

// 16 blocks of 6 rows in the products: short enough that a narrow tile's intermediates stay in L1, long enough that the
// hardware, which finds every link's stream of rows anew in each tile, has its prefetches under way for most of it.
constexpr int64_t tile_tokens = 96;

std::vector<Tile> make_tiles(int64_t batch, int64_t length, const int64_t* lengths, int64_t tokens);

// The rows past each sequence's length, set to zero. `width` floats a row.
void zero_past_lengths(int64_t batch, int64_t length, const int64_t* lengths, int64_t width, float* rows);

int max_threads();
int thread_number();
int thread_count();

// Hands out work to the threads of a parallel region. Each thread begins with a stretch of its own, the same one for
// every factor, so that it finds in its cache the rows it wrote itself; who is done helps the others.
class Share {
public:
    explicit Share(int threads) : stretches_(threads) {}

    // body(0), ..., body(count - 1). Every thread of the region calls this; all wait for the last one.
    template <class Body>
    void each(int64_t count, const Body& body) {
        const int own = thread_number(), threads = thread_count();
        const int64_t turn = stretches_[own].turn++ % 2;
        // The other turn is over for everyone, and its next one begins after the barrier.
        stretches_[own].taken[1 - turn] = 0;
        for (int i = 0; i < threads; ++i) {
            const int owner = (own + i) % threads;
            const int64_t begin = count * owner / threads, end = count * (owner + 1) / threads;
            std::atomic<int64_t>& taken = stretches_[owner].taken[turn];
            for (int64_t next; (next = begin + taken.fetch_add(1, std::memory_order_relaxed)) < end;) body(next);
        }
#pragma omp barrier
    }

private:
    struct alignas(64) Stretch {
        std::atomic<int64_t> taken[2] = {{0}, {0}};
        int64_t turn = 0;
    };
    std::vector<Stretch> stretches_;
};

}  // namespace paramixer
