// Parameter gradients: summed tile by tile within a chunk, then chunk by chunk. Neither order depends on the threads,
// so the bits of the sums do not either.
#pragma once

#include <vector>

#include "engine.h"
#include "kernels.h"
#include "memory.h"

namespace paramixer {

class ChunkSums {
public:
    ChunkSums(const TileShape& shape, int64_t factors, int64_t chunks)
        : shape_(shape),
          w1_floats_(shape.inputs * shape.padded_hidden),
          w2_floats_(shape.links * shape.padded_hidden),
          floats_(w1_floats_ + w2_floats_ + shape.padded_hidden + shape.padded_links),
          sums_(floats_ * chunks),
          totals_(floats_ * factors) {}

    GradientSums chunk(int64_t number) {
        float* const w1 = sums_.data() + number * floats_;
        float* const w2 = w1 + w1_floats_;
        float* const b1 = w2 + w2_floats_;
        return {w1, b1, w2, b1 + shape_.padded_hidden};
    }

    // Adds the first `chunks` chunks to one factor's gradients. Called by every thread of a region, which share the
    // work; without a barrier at the end.
    void reduce(int64_t factor, int64_t chunks, const ChainGradients& gradients) {
        const int64_t inputs = shape_.inputs, hidden = shape_.hidden, links = shape_.links;
        double* const totals = totals_.data() + factor * floats_;
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < inputs + links + 2; ++row) {
            // The rows of a chunk's sums in the order of memory: w1's, w2's (transposed), b1, b2.
            const int64_t at = row * shape_.padded_hidden;
            if (row < inputs)
                add_row(chunks, at, hidden, totals, {gradients.w1 + (factor * inputs + row) * hidden, 1});
            else if (row < inputs + links)
                add_row(chunks, at, hidden, totals, {gradients.w2 + factor * hidden * links + row - inputs, links});
            else if (row == inputs + links)
                add_row(chunks, at, hidden, totals, {gradients.b1 + factor * hidden, 1});
            else
                add_row(chunks, at, links, totals, {gradients.b2 + factor * links, 1});
        }
    }

private:
    void add_row(int64_t chunks, int64_t at, int64_t count, double* totals, Matrix to) {
        for (int64_t number = 0; number < chunks; ++number) {
            const float* const part = sums_.data() + number * floats_ + at;
            for (int64_t i = 0; i < count; ++i) totals[at + i] += part[i];
        }
        for (int64_t i = 0; i < count; ++i) to.data[i * to.ld] = static_cast<float>(totals[at + i]);
    }

    const TileShape& shape_;
    const int64_t w1_floats_, w2_floats_, floats_;
    Buffer sums_;
    std::vector<double> totals_;
};

}  // namespace paramixer
