#include <optional>

#include "chain_plan.h"
#include "link_table.h"

namespace paramixer {

int64_t checkpoint_count(const ChainSizes& sizes) {
    return sizes.checkpoint_every > 0 ? (sizes.factors - 1) / sizes.checkpoint_every : 0;
}

void paramix(const ChainSizes& sizes, const float* inputs, const float* values, const Parameters& parameters,
             float* out, float* checkpoints) {
    const int64_t floats = sizes.batch * sizes.length * sizes.channels, last = sizes.factors - 1;
    const int64_t every = sizes.checkpoint_every;
    ChainPlan plan(sizes, parameters, ChainPlan::Pass::forward);
    std::optional<LinkTable> table;
    if (sizes.row_ids) table.emplace(plan, parameters, inputs, ChainPlan::Pass::forward);
    Buffer passing(last > 0 && every != 1 ? plan.most_rows * sizes.channels : 0);

#pragma omp parallel
    {
        if (table) table->compute_weights();
        for (const Wave& wave : plan.waves) {
            const int64_t at = wave.row_begin * sizes.channels;
            // Outputs that are no checkpoints alternate between two buffers; the last factor writes to `out`.
            const auto output_of = [&](int64_t factor) {
                if (every > 0 && factor < last && (factor + 1) % every == 0)
                    return checkpoints + ((factor + 1) / every - 1) * floats + at;
                return (last - factor) % 2 == 0 ? out + at : passing.data();
            };
            for (int64_t factor = 0; factor <= last; ++factor)
                plan.forward(
                    factor, wave,
                    {table ? nullptr : inputs + wave.row_begin * sizes.inputs, table ? table->weights(factor) : nullptr,
                     values + at, factor == 0 ? values + at : output_of(factor - 1), output_of(factor)});
        }
    }
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, sizes.channels, out);
}

}  // namespace paramixer
