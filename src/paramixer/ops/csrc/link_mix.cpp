#include <vector>

#include "engine.h"
#include "tiles.h"
#include "work_queue.h"

namespace paramixer {
namespace {

// body(tile, sequence, token, runs) for every tile, in parallel: the sequence's and the tile's first row in
// [batch * length], and the thread's scratch memory.
template <class Body>
void for_each_tile(const MixSizes& sizes, const Body& body) {
    const std::vector<Tile> tiles = make_tiles(sizes.batch, sizes.length, sizes.lengths, tile_tokens);
    std::vector<Run> runs(max_threads() * sizes.links);
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < tiles.size(); ++i) {
        const int64_t sequence = tiles[i].batch * sizes.length;
        body(tiles[i], sequence, sequence + tiles[i].start, &runs[thread_number() * sizes.links]);
    }
}

}  // namespace

void link_mix(const MixSizes& sizes, const float* weights, const float* values, const int64_t* offsets, float* out) {
    const Kernels& kernel = kernels();
    const int64_t links = sizes.links, channels = sizes.channels;
    const Links reach = {offsets, links, sizes.ring};
    for_each_tile(sizes, [&](const Tile& tile, int64_t sequence, int64_t token, Run* runs) {
        kernel.mix({tile, reach, values + sequence * channels, channels, runs}, {weights + token * links, links, 1},
                   nullptr, out + token * channels);
    });
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, channels, out);
}

void link_mix_backward(const MixSizes& sizes, const float* grad, const float* weights, const float* values,
                       const int64_t* offsets, float* dweights, float* dvalues) {
    const Kernels& kernel = kernels();
    const int64_t links = sizes.links, channels = sizes.channels;
    const Links reach = {offsets, links, sizes.ring};
    for_each_tile(sizes, [&](const Tile& tile, int64_t sequence, int64_t token, Run* runs) {
        kernel.mix_dweights({tile, reach, values + sequence * channels, channels, runs}, grad + token * channels,
                            {dweights + token * links, links});
        kernel.mix_adjoint({tile, reach, grad + sequence * channels, channels, runs},
                           {weights + sequence * links, links, 1}, nullptr, dvalues + token * channels);
    });
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, links, dweights);
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, channels, dvalues);
}

}  // namespace paramixer
