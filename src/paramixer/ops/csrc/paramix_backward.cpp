#include <algorithm>

#include "factors.h"

namespace paramixer {
namespace {

// Parameter gradients are summed tile by tile within a chunk, then chunk by chunk. Neither depends on the threads, so
// the bits do not either.
class ChunkSums {
public:
    ChunkSums(const TileShape& shape, int64_t tiles)
        : shape_(shape),
          per_chunk(std::max<int64_t>(2, (tiles + most_chunks - 1) / most_chunks)),
          chunks((tiles + per_chunk - 1) / per_chunk),
          w1_floats_(shape.inputs * shape.padded_hidden),
          w2_floats_(shape.links * shape.padded_hidden),
          floats_(w1_floats_ + w2_floats_ + shape.padded_hidden + shape.padded_links),
          sums_(floats_ * chunks) {}

    GradientSums chunk(int64_t number) {
        float* const w1 = sums_.data() + number * floats_;
        float* const w2 = w1 + w1_floats_;
        float* const b1 = w2 + w2_floats_;
        return {w1, b1, w2, b1 + shape_.padded_hidden};
    }

    // Adds the chunks up into one factor's gradients; work-shared, without a barrier at the end.
    void reduce(int64_t factor, const ChainGradients& gradients) {
        const int64_t inputs = shape_.inputs, hidden = shape_.hidden, links = shape_.links;
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < inputs + links + 2; ++row) {
            // The rows of a chunk's sums, as they lie in memory: w1's, w2's (transposed), b1, b2.
            if (row < inputs)
                add_up(row * shape_.padded_hidden, hidden, gradients.w1 + (factor * inputs + row) * hidden, 1);
            else if (row < inputs + links)
                add_up(row * shape_.padded_hidden, hidden, gradients.w2 + factor * hidden * links + row - inputs, links);
            else if (row == inputs + links)
                add_up(row * shape_.padded_hidden, hidden, gradients.b1 + factor * hidden, 1);
            else
                add_up(row * shape_.padded_hidden, links, gradients.b2 + factor * links, 1);
        }
    }

private:
    static constexpr int64_t most_chunks = 64;

    void add_up(int64_t at, int64_t count, float* to, int64_t step) {
        constexpr int64_t together = 64;
        double sums[together];
        for (int64_t begin = 0; begin < count; begin += together) {
            const int64_t columns = std::min(together, count - begin);
            std::fill(sums, sums + columns, 0.0);
            for (int64_t number = 0; number < chunks; ++number) {
                const float* const part = sums_.data() + number * floats_ + at + begin;
                for (int64_t i = 0; i < columns; ++i) sums[i] += part[i];
            }
            for (int64_t i = 0; i < columns; ++i) to[(begin + i) * step] = static_cast<float>(sums[i]);
        }
    }

    const TileShape& shape_;

public:
    const int64_t per_chunk, chunks;

private:
    const int64_t w1_floats_, w2_floats_, floats_;
    Buffer sums_;
};

class Backward {
public:
    Backward(const ChainSizes& sizes, const float* grad, const float* inputs, const float* values,
             const Parameters& parameters, const float* kept, const ChainGradients& gradients)
        : sizes_(sizes),
          rows_(sizes.batch * sizes.length),
          grad_(grad),
          inputs_(inputs),
          values_(values),
          kept_(kept),
          gradients_(gradients),
          factors_(sizes, parameters, true),
          sums_(factors_.shape, static_cast<int64_t>(factors_.tiles.size())),
          weights_(rows_ * sizes.links),
          passing_(sizes.factors > 1 ? rows_ * sizes.channels : 0),
          first_sum_(sizes.residual == Residual::block ? rows_ * sizes.channels : 0),
          segment_(rows_ * sizes.channels * (std::min(sizes.keep, sizes.factors) - 1)) {}

    // Called by every thread of a parallel region.
    void run() {
        for (int64_t factor = sizes_.factors - 1; factor >= 0; --factor) {
            if (factor == sizes_.factors - 1 || (factor + 1) % sizes_.keep == 0) recompute(factor);
            parameter_gradients(factor);
            sums_.reduce(factor, gradients_);
            value_gradients(factor);
        }
    }

private:
    // The input of a factor: given, kept, or recomputed into the segment.
    float* segment_input(int64_t factor) {
        return segment_.data() + (factor % sizes_.keep - 1) * rows_ * sizes_.channels;
    }
    const float* input_of(int64_t factor) {
        if (factor == 0) return values_;
        if (factor % sizes_.keep != 0) return segment_input(factor);
        return kept_ + (factor / sizes_.keep - 1) * rows_ * sizes_.channels;
    }

    // The gradient of a factor's output.
    const float* grad_of(int64_t factor) { return factor == sizes_.factors - 1 ? grad_ : dvalues_of(factor + 1); }
    float* dvalues_of(int64_t factor) { return factor % 2 == 0 ? gradients_.values : passing_.data(); }

    void recompute(int64_t last) {
        for (int64_t factor = last / sizes_.keep * sizes_.keep; factor < last; ++factor)
            factors_.forward(factor, inputs_, values_, input_of(factor), segment_input(factor + 1));
    }

    void parameter_gradients(int64_t factor) {
        const int64_t channels = sizes_.channels, length = sizes_.length, tiles = factors_.tiles.size();
        const PackedFactor part = factors_.packed(factor);
        const Links reach = factors_.links(factor);
        const Workspace work = factors_.workspace();
        const float* const values = input_of(factor);
        const float* const grad = grad_of(factor);
        const bool begin_inputs = factor == sizes_.factors - 1;
#pragma omp for schedule(dynamic)
        for (int64_t chunk = 0; chunk < sums_.chunks; ++chunk) {
            const int64_t begin = chunk * sums_.per_chunk, end = std::min(begin + sums_.per_chunk, tiles);
            for (int64_t i = begin; i < end; ++i) {
                const Tile& tile = factors_.tiles[i];
                const int64_t sequence = tile.batch * length, token = sequence + tile.start;
                factors_.kernel.backward(factors_.shape, part, tile, reach, inputs_ + token * sizes_.inputs,
                                         values + sequence * channels, grad + token * channels,
                                         weights_.data() + sequence * sizes_.links, length,
                                         gradients_.inputs + token * sizes_.inputs, begin_inputs, sums_.chunk(chunk),
                                         i == begin, work);
                if (first_sum_.data()) add_rows(grad, tile, begin_inputs);
            }
        }
    }

    // With a residual from the block's first values, these collect the gradient of every factor's output.
    void add_rows(const float* grad, const Tile& tile, bool begin) {
        const int64_t at = (tile.batch * sizes_.length + tile.start) * sizes_.channels;
        const int64_t count = tile.count * sizes_.channels;
        float* const sum = first_sum_.data() + at;
        for (int64_t i = 0; i < count; ++i) sum[i] = begin ? grad[at + i] : sum[i] + grad[at + i];
    }

    void value_gradients(int64_t factor) {
        const int64_t channels = sizes_.channels, length = sizes_.length;
        const Links reach = factors_.links(factor);
        const Workspace work = factors_.workspace();
        const float* const grad = grad_of(factor);
        const float* const residual = sizes_.residual == Residual::factor ? grad
                                      : factor == 0                       ? first_sum_.data()
                                                                          : nullptr;
        float* const dvalues = dvalues_of(factor);
#pragma omp for schedule(dynamic, 2)
        for (size_t i = 0; i < factors_.tiles.size(); ++i) {
            const Tile& tile = factors_.tiles[i];
            const int64_t sequence = tile.batch * length, token = sequence + tile.start;
            factors_.kernel.mix_adjoint(tile, reach, {weights_.data() + sequence * sizes_.links, 1, length},
                                        grad + sequence * channels, channels,
                                        residual ? residual + token * channels : nullptr, dvalues + token * channels,
                                        work.runs);
        }
    }

    const ChainSizes& sizes_;
    const int64_t rows_;
    const float *const grad_, *const inputs_, *const values_, *const kept_;
    const ChainGradients& gradients_;
    Factors factors_;
    ChunkSums sums_;
    Buffer weights_;    // [batch, links, length]: one factor's, a link's side by side
    Buffer passing_;    // every other factor's value gradient; the rest go to gradients.values
    Buffer first_sum_;  // see add_rows
    Buffer segment_;    // [keep - 1, batch, length, channels]
};

}  // namespace

void paramix_backward(const ChainSizes& sizes, const float* grad, const float* inputs, const float* values,
                      const Parameters& parameters, const float* kept, const ChainGradients& gradients) {
    Backward backward(sizes, grad, inputs, values, parameters, kept, gradients);
#pragma omp parallel
    backward.run();
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, sizes.inputs, gradients.inputs);
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, sizes.channels, gradients.values);
}

}  // namespace paramixer
