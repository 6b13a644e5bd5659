#include <algorithm>
#include <optional>

#include "chain_plan.h"
#include "link_table.h"
#include "wave_rows.h"

namespace paramixer {
namespace {

class Backward {
public:
    Backward(const ChainSizes& sizes, const ChainTensors& tensors, const Parameters& parameters,
             const ChainGradients& gradients)
        : sizes_(sizes),
          tensors_(tensors),
          gradients_(gradients),
          plan_(sizes, parameters, ChainPlan::Pass::backward),
          sums_(plan_.shape, sizes.factors, sizes.row_ids ? 0 : plan_.most_chunks, std::max<int64_t>(sizes.heads, 1)),
          inputs_(plan_, tensors.inputs, sizes.inputs, sizes.shares_inputs),
          values_(plan_, tensors.values, sizes.channels),
          grad_(plan_, tensors.grad, sizes.channels),
          dinputs_(plan_, gradients.inputs, sizes.inputs, sizes.shares_inputs),
          dvalues_(plan_, gradients.values, sizes.channels),
          weights_(plan_.most_rows * sizes.links),
          passing_(sizes.factors > 1 ? plan_.most_rows * sizes.channels : 0),
          first_sum_(sizes.residual == Residual::block ? plan_.most_rows * sizes.channels : 0),
          segment_(plan_.most_rows * sizes.channels * (std::min(sizes.checkpoint_every, sizes.factors) - 1)),
          dweights_(sizes.row_ids ? plan_.most_rows * plan_.shape.padded_links : 0) {
        if (sizes.row_ids) table_.emplace(plan_, parameters, tensors.inputs, ChainPlan::Pass::backward);
    }

    // Called by every thread of a parallel region.
    void run() {
        if (table_) table_->compute_weights();
        // If every sequence is empty, the gradients of the parameters are zero.
        if (!table_ && plan_.waves.empty())
            for (int64_t factor = 0; factor < sizes_.factors; ++factor) sums_.reduce(factor, 0, gradients_);
        for (const Wave& wave : plan_.waves) {
            if (sizes_.heads) read(wave);
            for (int64_t factor = sizes_.factors - 1; factor >= 0; --factor) {
                if (factor == sizes_.factors - 1 || (factor + 1) % sizes_.checkpoint_every == 0)
                    recompute_segment(wave, factor);
                link_gradients(wave, factor);
                value_gradients(wave, factor);
            }
            if (sizes_.heads) write(wave);
        }
        if (table_) table_->backward(gradients_);
    }

private:
    void read(const Wave& wave) {
        plan_.for_each_tile(wave, [&](const Tile& tile) {
            for (WaveRows* rows : {&inputs_, &values_, &grad_}) rows->read(tile, wave);
        });
    }
    void write(const Wave& wave) {
        plan_.for_each_tile(wave, [&](const Tile& tile) {
            dvalues_.write(tile, wave);
            if (sizes_.shares_inputs)
                dinputs_.write_sum(tile, wave);
            else
                dinputs_.write(tile, wave);
        });
    }

    // All pointers below are to a wave's first row. The input of a factor: the values, a checkpoint, or recomputed.
    float* segment_input(int64_t factor) {
        return segment_.data() + (factor % sizes_.checkpoint_every - 1) * plan_.most_rows * sizes_.channels;
    }
    const float* input_of(const Wave& wave, int64_t factor) {
        if (factor == 0) return values_.begin(wave);
        if (factor % sizes_.checkpoint_every != 0) return segment_input(factor);
        const int64_t rows = sizes_.batch * sizes_.length * std::max<int64_t>(sizes_.heads, 1);
        const int64_t row = (factor / sizes_.checkpoint_every - 1) * rows + wave.row_begin;
        return tensors_.checkpoints + row * sizes_.channels;
    }

    // The gradient of a factor's output.
    const float* grad_of(const Wave& wave, int64_t factor) {
        if (factor == sizes_.factors - 1) return grad_.begin(wave);
        return dvalues_of(wave, factor + 1);
    }
    float* dvalues_of(const Wave& wave, int64_t factor) {
        return factor % 2 == 0 ? dvalues_.begin(wave) : passing_.data();
    }

    // The inputs of the factors between the last checkpoint before `last` and `last`.
    void recompute_segment(const Wave& wave, int64_t last) {
        for (int64_t factor = last / sizes_.checkpoint_every * sizes_.checkpoint_every; factor < last; ++factor)
            plan_.forward(factor, wave,
                          {table_ ? nullptr : inputs_.begin(wave), table_ ? table_->weights(factor) : nullptr,
                           input_of(wave, 0), input_of(wave, factor), segment_input(factor + 1)});
    }

    // Stores the factor's weights link by link, and from the gradients of the weights computes those of the parameters
    // and inputs; with a link table these follow at the end, from sums over the tokens that share a row.
    void link_gradients(const Wave& wave, int64_t factor) {
        const int64_t channels = sizes_.channels, length = sizes_.length, padded = plan_.shape.padded_links;
        const Kernels& kernel = plan_.kernel;
        FactorContext context = plan_.context(factor);
        const Workspace& work = context.work;
        const float* const values = input_of(wave, factor);
        const float* const grad = grad_of(wave, factor);
        const Write write = factor == sizes_.factors - 1 ? Write::set : Write::add;
        const auto sequence_of = [&](const Tile& tile) { return tile.batch * length - wave.row_begin; };
        const auto weights_of = [&](int64_t sequence) {
            return Matrix{weights_.data() + sequence * sizes_.links, length};
        };
        if (table_) {
            plan_.for_each_tile(wave, [&](const Tile& tile) {
                const int64_t sequence = sequence_of(tile), token = sequence + tile.start;
                kernel.gather_weights(plan_.shape, tile.count, table_->weights(factor),
                                      sizes_.row_ids + wave.row_begin + token, work.weights);
                kernel.transpose_weights(plan_.shape, tile, work.weights, weights_of(sequence));
                kernel.mix_dweights({tile, context.links, values + sequence * channels, channels, channels, work.runs},
                                    grad + token * channels, {dweights_.data() + token * padded, padded}, padded);
                add_to_first(grad, token * channels, tile.count * channels, write);
            });
            table_->add_gradients(factor, wave, dweights_.data());
            return;
        }
        const float* const inputs = inputs_.begin(wave);
        float* const dinputs = dinputs_.begin(wave);
        plan_.for_each_chunk(wave, sums_, [&](const Tile& tile, const GradientSums& into, Write to_sums) {
            plan_.select_head(factor, tile, context);
            const int64_t sequence = sequence_of(tile), token = sequence + tile.start;
            kernel.backward(context, tile,
                            {inputs + token * sizes_.inputs, values + sequence * channels, grad + token * channels,
                             weights_of(sequence), dinputs + token * sizes_.inputs},
                            {into, to_sums, write});
            add_to_first(grad, token * channels, tile.count * channels, write);
        });
        sums_.reduce(factor, wave.chunks(), gradients_,
                     sizes_.heads ? plan_.chunk_heads.data() + wave.chunk_begin : nullptr);
    }

    // With a residual from the block's first values, the gradient of every factor's output is added to theirs.
    void add_to_first(const float* grad, int64_t at, int64_t count, Write write) {
        if (sizes_.residual != Residual::block) return;
        float* const sum = first_sum_.data() + at;
        for (int64_t i = 0; i < count; ++i) sum[i] = write == Write::set ? grad[at + i] : sum[i] + grad[at + i];
    }

    void value_gradients(const Wave& wave, int64_t factor) {
        const int64_t channels = sizes_.channels, length = sizes_.length;
        FactorContext context = plan_.context(factor);
        const float* const grad = grad_of(wave, factor);
        const float* const residual = sizes_.residual == Residual::factor ? grad
                                      : factor == 0                       ? first_sum_.data()
                                                                          : nullptr;
        float* const dvalues = dvalues_of(wave, factor);
        plan_.for_each_tile(wave, [&](const Tile& tile) {
            plan_.select_head(factor, tile, context);
            const int64_t sequence = tile.batch * length - wave.row_begin, token = sequence + tile.start;
            plan_.kernel.mix_adjoint(
                {tile, context.links, grad + sequence * channels, channels, channels, context.work.runs},
                {weights_.data() + sequence * sizes_.links, 1, length},
                residual ? residual + token * channels : nullptr, dvalues + token * channels);
        });
    }

    const ChainSizes& sizes_;
    const ChainTensors& tensors_;
    const ChainGradients& gradients_;
    ChainPlan plan_;
    ChunkSums sums_;
    WaveRows inputs_, values_, grad_, dinputs_, dvalues_;
    // For one wave at a time:
    Buffer weights_;    // [sequences, links, length]: one factor's
    Buffer passing_;    // every other factor's value gradient; the rest go to gradients.values
    Buffer first_sum_;  // see add_to_first
    Buffer segment_;    // [checkpoint_every - 1, sequences, length, channels]
    Buffer dweights_;   // [sequences, length, padded_links], with a link table
    std::optional<LinkTable> table_;
};

}  // namespace

void paramix_backward(const ChainSizes& sizes, const ChainTensors& tensors, const Parameters& parameters,
                      const ChainGradients& gradients) {
    Backward backward(sizes, tensors, parameters, gradients);
#pragma omp parallel
    backward.run();
    const int64_t heads = std::max<int64_t>(sizes.heads, 1);
    if (!sizes.row_ids)
        zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, sizes.inputs * (sizes.shares_inputs ? 1 : heads),
                          gradients.inputs);
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, sizes.channels * heads, gradients.values);
}

}  // namespace paramixer
