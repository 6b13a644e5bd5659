#include <vector>

#include "engine.h"
#include "tiles.h"

namespace paramixer {

void link_mix(const MixSizes& sizes, const float* weights, const float* values, const int64_t* offsets, float* out) {
    const Kernels& kernel = kernels();
    const int64_t length = sizes.length, links = sizes.links, channels = sizes.channels;
    const std::vector<Tile> tiles = make_tiles(sizes.batch, length, sizes.lengths, tile_tokens);
    std::vector<Run> runs(max_threads() * links);
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < tiles.size(); ++i) {
        const Tile& tile = tiles[i];
        const int64_t sequence = tile.batch * length, token = sequence + tile.start;
        kernel.mix(tile, {offsets, links, sizes.ring}, {weights + token * links, links, 1}, values + sequence * channels,
                   channels, nullptr, out + token * channels, &runs[thread_number() * links]);
    }
    zero_past_lengths(sizes.batch, length, sizes.lengths, channels, out);
}

void link_mix_backward(const MixSizes& sizes, const float* grad, const float* weights, const float* values,
                       const int64_t* offsets, float* dweights, float* dvalues) {
    const Kernels& kernel = kernels();
    const int64_t length = sizes.length, links = sizes.links, channels = sizes.channels;
    const std::vector<Tile> tiles = make_tiles(sizes.batch, length, sizes.lengths, tile_tokens);
    std::vector<Run> runs(max_threads() * links);
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < tiles.size(); ++i) {
        const Tile& tile = tiles[i];
        const int64_t sequence = tile.batch * length, token = sequence + tile.start;
        const Links reach = {offsets, links, sizes.ring};
        Run* const own_runs = &runs[thread_number() * links];
        kernel.mix_dweights(tile, reach, grad + token * channels, values + sequence * channels, channels,
                            dweights + token * links, links, own_runs);
        kernel.mix_adjoint(tile, reach, {weights + sequence * links, links, 1}, grad + sequence * channels, channels,
                           nullptr, dvalues + token * channels, own_runs);
    }
    zero_past_lengths(sizes.batch, length, sizes.lengths, links, dweights);
    zero_past_lengths(sizes.batch, length, sizes.lengths, channels, dvalues);
}

}  // namespace paramixer
