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
    ChunkSums(const TileShape& shape, int64_t factors, int64_t chunks, int64_t heads = 1)
        : shape_(shape),
          factors_(factors),
          heads_(heads),
          w1_floats_(shape.inputs * shape.padded_hidden),
          w2_floats_(shape.links * shape.padded_hidden),
          floats_(w1_floats_ + w2_floats_ + shape.padded_hidden + shape.padded_links),
          sums_(floats_ * chunks),
          totals_(floats_ * factors * heads) {}

    GradientSums chunk(int64_t number) {
        float* const w1 = sums_.data() + number * floats_;
        float* const w2 = w1 + w1_floats_;
        float* const b1 = w2 + w2_floats_;
        return {w1, b1, w2, b1 + shape_.padded_hidden};
    }

    // Adds the first `chunks` chunks to one factor's gradients; with heads, those whose `chunk_heads` is the head to
    // its. Called by every thread of a region, which share the work; without a barrier at the end.
    void reduce(int64_t factor, int64_t chunks, const ChainGradients& gradients, const int64_t* chunk_heads = nullptr) {
        const int64_t inputs = shape_.inputs, hidden = shape_.hidden, links = shape_.links;
        const int64_t rows = inputs + links + 2;
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < heads_ * rows; ++i) {
            const int64_t head = i / rows, row = i % rows, index = head * factors_ + factor;
            // The rows of a chunk's sums in the order of memory: w1's, w2's (transposed), b1, b2.
            const int64_t at = row * shape_.padded_hidden;
            double* const totals = totals_.data() + index * floats_ + at;
            const int64_t count = row == rows - 1 ? links : hidden;
            for (int64_t number = 0; number < chunks; ++number) {
                if (chunk_heads && chunk_heads[number] != head) continue;
                const float* const part = sums_.data() + number * floats_ + at;
                for (int64_t j = 0; j < count; ++j) totals[j] += part[j];
            }
            const Matrix to = row < inputs ? Matrix{gradients.w1 + (index * inputs + row) * hidden, 1}
                              : row < inputs + links
                                  ? Matrix{gradients.w2 + index * hidden * links + row - inputs, links}
                              : row < rows - 1 ? Matrix{gradients.b1 + index * hidden, 1}
                                               : Matrix{gradients.b2 + index * links, 1};
            for (int64_t j = 0; j < count; ++j) to.data[j * to.ld] = static_cast<float>(totals[j]);
        }
    }

private:
    const TileShape& shape_;
    const int64_t factors_, heads_;
    const int64_t w1_floats_, w2_floats_, floats_;
    Buffer sums_;
    std::vector<double> totals_;
};

}  // namespace paramixer
