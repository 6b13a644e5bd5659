// A linear layer, GELU and another linear layer for every token: the chain's own MLP without the mix.
#include "factors.h"
#include "sums.h"

namespace paramixer {

void mlp(const ChainSizes& sizes, const float* inputs, const Parameters& parameters, float* out) {
    Factors factors(sizes, parameters, false);
    const PackedFactor part = factors.packed(0);
#pragma omp parallel
    for (const Wave& wave : factors.waves) {
        const Workspace work = factors.workspace();
        factors.each_tile(wave, [&](const Tile& tile) {
            const int64_t token = tile.batch * sizes.length + tile.start;
            factors.kernel.mlp(factors.shape, part, tile.count, inputs + token * sizes.inputs, out + token * sizes.links,
                               work);
        });
    }
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, sizes.links, out);
}

void mlp_backward(const ChainSizes& sizes, const float* grad, const float* inputs, const Parameters& parameters,
                  const ChainGradients& gradients) {
    Factors factors(sizes, parameters, true);
    ChunkSums sums(factors.shape, 1, factors.most_chunks);
    const PackedFactor part = factors.packed(0);
#pragma omp parallel
    {
        if (factors.waves.empty()) sums.reduce(0, 0, gradients);
        for (const Wave& wave : factors.waves) {
            const Workspace work = factors.workspace();
            factors.each_chunk(wave, [&](int64_t number, const Chunk& chunk) {
                for (int64_t i = chunk.begin; i < chunk.end; ++i) {
                    const Tile& tile = factors.tiles[i];
                    const int64_t token = tile.batch * sizes.length + tile.start;
                    factors.kernel.mlp_backward(factors.shape, part, tile.count, inputs + token * sizes.inputs,
                                                grad + token * sizes.links, gradients.inputs + token * sizes.inputs, true,
                                                sums.chunk(number), i == chunk.begin, work);
                }
            });
            sums.reduce(0, wave.chunk_end - wave.chunk_begin, gradients);
#pragma omp barrier
        }
    }
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, sizes.inputs, gradients.inputs);
}

}  // namespace paramixer
