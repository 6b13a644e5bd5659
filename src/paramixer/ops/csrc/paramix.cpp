#include <algorithm>
#include <optional>

#include "chain_plan.h"
#include "link_table.h"
#include "wave_rows.h"

namespace paramixer {

int64_t checkpoint_count(const ChainSizes& sizes) {
    return sizes.checkpoint_every > 0 ? (sizes.factors - 1) / sizes.checkpoint_every : 0;
}

void paramix(const ChainSizes& sizes, const float* inputs, const float* values, const Parameters& parameters,
             float* out, float* checkpoints) {
    const int64_t channels = sizes.channels, last = sizes.factors - 1;
    const int64_t width = channels * std::max<int64_t>(sizes.heads, 1), floats = sizes.batch * sizes.length * width;
    const int64_t every = sizes.checkpoint_every;
    ChainPlan plan(sizes, parameters, ChainPlan::Pass::forward);
    std::optional<LinkTable> table;
    if (sizes.row_ids) table.emplace(plan, parameters, inputs, ChainPlan::Pass::forward);
    Buffer passing(last > 0 && every != 1 ? plan.most_rows * channels : 0);
    WaveRows inputs_of(plan, inputs, sizes.inputs, sizes.shares_inputs), values_of(plan, values, channels);
    WaveRows out_of(plan, out, channels);

#pragma omp parallel
    {
        if (table) table->compute_weights();
        for (const Wave& wave : plan.waves) {
            if (sizes.heads)
                plan.for_each_tile(wave, [&](const Tile& tile) {
                    inputs_of.read(tile, wave);
                    values_of.read(tile, wave);
                });
            const float* const first = values_of.begin(wave);
            // Outputs that are no checkpoints alternate between two buffers; the last factor writes to `out`.
            const auto output_of = [&](int64_t factor) {
                if (every > 0 && factor < last && (factor + 1) % every == 0)
                    return checkpoints + ((factor + 1) / every - 1) * floats + wave.row_begin * channels;
                return (last - factor) % 2 == 0 ? out_of.begin(wave) : passing.data();
            };
            for (int64_t factor = 0; factor <= last; ++factor)
                plan.forward(factor, wave,
                             {table ? nullptr : inputs_of.begin(wave), table ? table->weights(factor) : nullptr, first,
                              factor == 0 ? first : output_of(factor - 1), output_of(factor)});
            if (sizes.heads) plan.for_each_tile(wave, [&](const Tile& tile) { out_of.write(tile, wave); });
        }
    }
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, width, out);
}

}  // namespace paramixer
