// A linear layer, GELU and another linear layer for every token: the chain's MLP without the mix.
#include "chain_plan.h"

namespace paramixer {

void mlp(const ChainSizes& sizes, const float* inputs, const Parameters& parameters, float* out) {
    ChainPlan plan(sizes, parameters, ChainPlan::Pass::forward);
#pragma omp parallel
    {
        const FactorContext context = plan.context(0);
        for (const Wave& wave : plan.waves)
            plan.for_each_tile(wave, [&](const Tile& tile) {
                const int64_t token = tile.batch * sizes.length + tile.start;
                plan.kernel.mlp(context, tile.count, inputs + token * sizes.inputs, out + token * sizes.links);
            });
    }
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, sizes.links, out);
}

void mlp_backward(const ChainSizes& sizes, const float* grad, const float* inputs, const Parameters& parameters,
                  const ChainGradients& gradients) {
    ChainPlan plan(sizes, parameters, ChainPlan::Pass::backward);
    ChunkSums sums(plan.shape, 1, plan.most_chunks);
#pragma omp parallel
    {
        if (plan.waves.empty()) sums.reduce(0, 0, gradients);
        for (const Wave& wave : plan.waves)
            plan.mlp_backward(0, wave, {inputs, grad, gradients.inputs}, Write::set, sums, gradients);
    }
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, sizes.inputs, gradients.inputs);
}

}  // namespace paramixer
