#include <algorithm>
#include <optional>

#include "factors.h"
#include "sums.h"
#include "written.h"

namespace paramixer {
namespace {

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
          sums_(factors_.shape, sizes.factors, sizes.ids ? 0 : factors_.most_chunks),
          weights_(factors_.most_rows * sizes.links),
          passing_(sizes.factors > 1 ? factors_.most_rows * sizes.channels : 0),
          first_sum_(sizes.residual == Residual::block ? factors_.most_rows * sizes.channels : 0),
          segment_(factors_.most_rows * sizes.channels * (std::min(sizes.keep, sizes.factors) - 1)),
          dweights_(sizes.ids ? factors_.most_rows * factors_.shape.padded_links : 0) {
        if (sizes.ids) written_.emplace(factors_, parameters, inputs, true);
    }

    // Called by every thread of a parallel region.
    void run() {
        if (written_) written_->write();
        if (!written_ && factors_.waves.empty())  // every sequence is empty: the parameters have gradients all the same, of zero
            for (int64_t factor = 0; factor < sizes_.factors; ++factor) sums_.reduce(factor, 0, gradients_);
        for (const Wave& wave : factors_.waves) {
            for (int64_t factor = sizes_.factors - 1; factor >= 0; --factor) {
                if (factor == sizes_.factors - 1 || (factor + 1) % sizes_.keep == 0) recompute(wave, factor);
                if (written_) {
                    weight_gradients(wave, factor);
                    written_->add(factor, wave, dweights_.data());
                } else {
                    parameter_gradients(wave, factor);
                    sums_.reduce(factor, wave.chunk_end - wave.chunk_begin, gradients_);
                }
                value_gradients(wave, factor);
            }
        }
        if (written_) written_->backward(gradients_);
    }

private:
    // All pointers below are to a wave's first row. The input of a factor: given, kept, or recomputed into the segment.
    float* segment_input(int64_t factor) {
        return segment_.data() + (factor % sizes_.keep - 1) * factors_.most_rows * sizes_.channels;
    }
    const float* input_of(const Wave& wave, int64_t factor) {
        const int64_t at = wave.row_begin * sizes_.channels;
        if (factor == 0) return values_ + at;
        if (factor % sizes_.keep != 0) return segment_input(factor);
        return kept_ + (factor / sizes_.keep - 1) * rows_ * sizes_.channels + at;
    }

    // The gradient of a factor's output.
    const float* grad_of(const Wave& wave, int64_t factor) {
        if (factor == sizes_.factors - 1) return grad_ + wave.row_begin * sizes_.channels;
        return dvalues_of(wave, factor + 1);
    }
    float* dvalues_of(const Wave& wave, int64_t factor) {
        return factor % 2 == 0 ? gradients_.values + wave.row_begin * sizes_.channels : passing_.data();
    }

    void recompute(const Wave& wave, int64_t last) {
        for (int64_t factor = last / sizes_.keep * sizes_.keep; factor < last; ++factor)
            factors_.forward(factor, wave, written_ ? nullptr : inputs_ + wave.row_begin * sizes_.inputs,
                             written_ ? written_->weights(factor) : nullptr, input_of(wave, 0), input_of(wave, factor),
                             segment_input(factor + 1));
    }

    void parameter_gradients(const Wave& wave, int64_t factor) {
        const int64_t channels = sizes_.channels, length = sizes_.length;
        const PackedFactor part = factors_.packed(factor);
        const Links reach = factors_.links(factor);
        const Workspace work = factors_.workspace();
        const float* const inputs = inputs_ + wave.row_begin * sizes_.inputs;
        const float* const values = input_of(wave, factor);
        const float* const grad = grad_of(wave, factor);
        float* const dinputs = gradients_.inputs + wave.row_begin * sizes_.inputs;
        const bool begin_inputs = factor == sizes_.factors - 1;
        factors_.each_chunk(wave, [&](int64_t number, const Chunk& chunk) {
            for (int64_t i = chunk.begin; i < chunk.end; ++i) {
                const Tile& tile = factors_.tiles[i];
                const int64_t sequence = tile.batch * length - wave.row_begin, token = sequence + tile.start;
                factors_.kernel.backward(factors_.shape, part, tile, reach, inputs + token * sizes_.inputs,
                                         values + sequence * channels, grad + token * channels,
                                         weights_.data() + sequence * sizes_.links, length,
                                         dinputs + token * sizes_.inputs, begin_inputs, sums_.chunk(number),
                                         i == chunk.begin, work);
                if (first_sum_.data()) add_rows(grad, token * channels, tile.count * channels, begin_inputs);
            }
        });
    }

    // Where tokens have rows of a table, for whose sums the parameters wait.
    void weight_gradients(const Wave& wave, int64_t factor) {
        const int64_t channels = sizes_.channels, length = sizes_.length, padded = factors_.shape.padded_links;
        const Kernels& kernel = factors_.kernel;
        const Links reach = factors_.links(factor);
        const Workspace work = factors_.workspace();
        const float* const values = input_of(wave, factor);
        const float* const grad = grad_of(wave, factor);
        factors_.each_tile(wave, [&](const Tile& tile) {
            const int64_t sequence = tile.batch * length - wave.row_begin, token = sequence + tile.start;
            kernel.look_up(factors_.shape, tile.count, written_->weights(factor), sizes_.ids + wave.row_begin + token,
                           work.weights);
            kernel.transpose_weights(factors_.shape, tile, work.weights, weights_.data() + sequence * sizes_.links,
                                     length);
            kernel.mix_dweights(tile, reach, grad + token * channels, values + sequence * channels, channels,
                                dweights_.data() + token * padded, padded, work.runs);
            if (first_sum_.data())
                add_rows(grad, token * channels, tile.count * channels, factor == sizes_.factors - 1);
        });
    }

    // With a residual from the block's first values, these collect the gradient of every factor's output.
    void add_rows(const float* grad, int64_t at, int64_t count, bool begin) {
        float* const sum = first_sum_.data() + at;
        for (int64_t i = 0; i < count; ++i) sum[i] = begin ? grad[at + i] : sum[i] + grad[at + i];
    }

    void value_gradients(const Wave& wave, int64_t factor) {
        const int64_t channels = sizes_.channels, length = sizes_.length;
        const Links reach = factors_.links(factor);
        const Workspace work = factors_.workspace();
        const float* const grad = grad_of(wave, factor);
        const float* const residual = sizes_.residual == Residual::factor ? grad
                                      : factor == 0                       ? first_sum_.data()
                                                                          : nullptr;
        float* const dvalues = dvalues_of(wave, factor);
        factors_.each_tile(wave, [&](const Tile& tile) {
            const int64_t sequence = tile.batch * length - wave.row_begin, token = sequence + tile.start;
            factors_.kernel.mix_adjoint(tile, reach, {weights_.data() + sequence * sizes_.links, 1, length},
                                        grad + sequence * channels, channels,
                                        residual ? residual + token * channels : nullptr, dvalues + token * channels,
                                        work.runs);
        });
    }

    const ChainSizes& sizes_;
    const int64_t rows_;
    const float *const grad_, *const inputs_, *const values_, *const kept_;
    const ChainGradients& gradients_;
    Factors factors_;
    ChunkSums sums_;
    // For one wave at a time:
    Buffer weights_;    // [sequences, links, length]: one factor's, a link's side by side
    Buffer passing_;    // every other factor's value gradient; the rest go to gradients.values
    Buffer first_sum_;  // see add_rows
    Buffer segment_;    // [keep - 1, sequences, length, channels]
    Buffer dweights_;   // [sequences, length, padded_links], where tokens have rows of a table
    std::optional<Written> written_;
};

}  // namespace

void paramix_backward(const ChainSizes& sizes, const float* grad, const float* inputs, const float* values,
                      const Parameters& parameters, const float* kept, const ChainGradients& gradients) {
    Backward backward(sizes, grad, inputs, values, parameters, kept, gradients);
#pragma omp parallel
    backward.run();
    if (!sizes.ids) zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, sizes.inputs, gradients.inputs);
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, sizes.channels, gradients.values);
}

}  // namespace paramixer
