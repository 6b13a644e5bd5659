// The gradient of a table of embeddings: for every row the sum over the tokens with its id.
#include <algorithm>
#include <memory>
#include <new>

#include "engine.h"
#include "work_queue.h"

namespace paramixer {

void lookup_backward(const LookupSizes& sizes, const int64_t* ids, const float* grad, float* dtable) {
    // A cache line of every token's gradient: stripes are independent, and each adds in the order of the tokens, in
    // double precision, so that the sum is exact for a million equal tokens and the same for any number of threads.
    constexpr int64_t stripe = 16;
    const int64_t rows = sizes.rows, channels = sizes.channels;
    int64_t count;
    if (__builtin_mul_overflow(rows, stripe * max_threads(), &count)) throw std::bad_alloc();
    // Allocated here: an exception must not leave the parallel region.
    const std::unique_ptr<double[]> memory(new double[static_cast<size_t>(count)]);
#pragma omp parallel
    {
        double* const sums = memory.get() + thread_number() * rows * stripe;
#pragma omp for schedule(dynamic)
        for (int64_t begin = 0; begin < channels; begin += stripe) {
            const int64_t width = std::min(stripe, channels - begin);
            std::fill(sums, sums + rows * stripe, 0.0);
            for (int64_t token = 0; token < sizes.tokens; ++token) {
                const float* const from = grad + token * channels + begin;
                double* const to = sums + ids[token] * stripe;
                if (width == stripe)
                    for (int64_t c = 0; c < stripe; ++c) to[c] += from[c];
                else
                    for (int64_t c = 0; c < width; ++c) to[c] += from[c];
            }
            for (int64_t row = 0; row < rows; ++row)
                for (int64_t c = 0; c < width; ++c)
                    dtable[row * channels + begin + c] = static_cast<float>(sums[row * stripe + c]);
        }
    }
}

}  // namespace paramixer
