// What the forward and the backward pass of a chain share: how the work is divided, packed parameters, the threads'
// workspaces, and one factor's forward pass.
#pragma once

#include <vector>

#include "chunk_sums.h"
#include "engine.h"
#include "memory.h"
#include "tiles.h"
#include "work_queue.h"

namespace paramixer {

// Consecutive tiles of one sequence, whose parameter gradients are summed before they are added to those of others.
struct Chunk {
    int64_t begin, end;  // tiles
};

// Consecutive sequences that go through all factors together.
struct Wave {
    int64_t tile_begin, tile_end, chunk_begin, chunk_end;
    int64_t row_begin, rows;  // in [batch * length]

    int64_t chunks() const { return chunk_end - chunk_begin; }
};

// What a forward pass of one factor reads and writes; pointers are to the wave's first row.
struct ForwardRows {
    const float* inputs;      // unused with a link table
    const float* link_table;  // the factor's link weights [rows, links], or null
    const float *first_values, *values;
    float* out;
};

class ChainPlan {
public:
    enum class Pass { forward, backward };

    ChainPlan(const ChainSizes& sizes, const Parameters& parameters, Pass pass, const Kernels& kernel = kernels());

    const ChainSizes& sizes;
    const Kernels& kernel;
    TileShape shape;
    std::vector<Tile> tiles;
    std::vector<Chunk> chunks;
    std::vector<Wave> waves;
    int64_t most_rows, most_chunks;  // of any wave

    // One factor for the calling thread.
    FactorContext context(int64_t factor);

    // body(tile) for every tile of the wave. Called by every thread of a parallel region, which share the work; ends
    // with a barrier.
    template <class Body>
    void for_each_tile(const Wave& wave, const Body& body) {
        queue_.run(wave.tile_end - wave.tile_begin, [&](int64_t i) { body(tiles[wave.tile_begin + i]); });
    }

    // The same chunk by chunk: body(tile, sums, write), with the chunk's sums and Write::set for its first tile.
    template <class Body>
    void for_each_chunk(const Wave& wave, ChunkSums& sums, const Body& body) {
        queue_.run(wave.chunks(), [&](int64_t number) {
            const Chunk& chunk = chunks[wave.chunk_begin + number];
            const GradientSums into = sums.chunk(number);
            for (int64_t i = chunk.begin; i < chunk.end; ++i)
                body(tiles[i], into, i == chunk.begin ? Write::set : Write::add);
        });
    }

    // One factor over a wave; called by every thread of a region, ends with a barrier.
    void forward(int64_t factor, const Wave& wave, const ForwardRows& rows);

    // The backward pass of one factor's MLP over a wave. `rows` are of all tokens. Called by every thread of a region,
    // ends with a barrier.
    void mlp_backward(int64_t factor, const Wave& wave, const MlpBackwardTile& rows, Write to_dinputs, ChunkSums& sums,
                      const ChainGradients& gradients);

private:
    void plan_waves();
    void pack(int64_t factor);

    const Parameters parameters_;
    const int64_t work_floats_;
    const Pass pass_;
    const int64_t factor_floats_;
    Buffer work_, packed_;
    std::vector<Run> runs_;
    WorkQueue queue_;
};

}  // namespace paramixer
