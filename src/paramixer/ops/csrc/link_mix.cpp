#include <vector>

#include "engine.h"
#include "tiles.h"
#include "work_queue.h"

namespace paramixer {
namespace {

// One head of one tile: its links, where its rows begin, and the thread's scratch memory.
struct HeadTile {
    Tile tile;
    Links links;
    int64_t sequence, token;  // the sequence's and the tile's first row in [batch * length]
    int64_t channel, weight;  // the head's first column of values and of weights
    Run* runs;

    Gather gather(const MixSizes& sizes, const float* values) const {
        const int64_t ld = sizes.heads * sizes.channels;
        return {tile, links, values + sequence * ld + channel, sizes.channels, ld, runs};
    }
};

// body(head) for every head of every tile, in parallel.
template <class Body>
void for_each_head(const MixSizes& sizes, const int64_t* offsets, const Body& body) {
    const std::vector<Tile> tiles = make_tiles(sizes.batch, sizes.length, sizes.lengths, tile_tokens);
    std::vector<Run> runs(max_threads() * sizes.links);
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < tiles.size(); ++i) {
        const int64_t sequence = tiles[i].batch * sizes.length;
        for (int64_t head = 0; head < sizes.heads; ++head)
            body(HeadTile{tiles[i],
                          {offsets + head * sizes.links, sizes.links, sizes.ring},
                          sequence,
                          sequence + tiles[i].start,
                          head * sizes.channels,
                          head * sizes.links,
                          &runs[thread_number() * sizes.links]});
    }
}

}  // namespace

void link_mix(const MixSizes& sizes, const float* weights, const float* values, const int64_t* offsets, float* out) {
    const Kernels& kernel = kernels();
    const int64_t links = sizes.heads * sizes.links, channels = sizes.heads * sizes.channels;
    for_each_head(sizes, offsets, [&](const HeadTile& head) {
        kernel.mix(head.gather(sizes, values), {weights + head.token * links + head.weight, links, 1}, nullptr,
                   out + head.token * channels + head.channel);
    });
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, channels, out);
}

void link_mix_backward(const MixSizes& sizes, const float* grad, const float* weights, const float* values,
                       const int64_t* offsets, float* dweights, float* dvalues) {
    const Kernels& kernel = kernels();
    const int64_t links = sizes.heads * sizes.links, channels = sizes.heads * sizes.channels;
    for_each_head(sizes, offsets, [&](const HeadTile& head) {
        kernel.mix_dweights(head.gather(sizes, values), grad + head.token * channels + head.channel,
                            {dweights + head.token * links + head.weight, links}, sizes.links);
        kernel.mix_adjoint(head.gather(sizes, grad), {weights + head.sequence * links + head.weight, links, 1}, nullptr,
                           dvalues + head.token * channels + head.channel);
    });
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, links, dweights);
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, channels, dvalues);
}

}  // namespace paramixer
