// What the chain's forward and backward pass share: packed parameters, the threads' workspaces, one factor's pass.
#pragma once

#include <vector>

#include "engine.h"
#include "memory.h"
#include "tiles.h"

namespace paramixer {

// Up to `per_chunk` consecutive tiles of one sequence, whose parameter gradients are summed up before they meet others.
struct Chunk {
    int64_t begin, end;  // tiles
};

// Consecutive sequences that go through all factors together.
struct Wave {
    int64_t tile_begin, tile_end, chunk_begin, chunk_end;
    int64_t row_begin, rows;  // in [batch * length]
};

class Factors {
public:
    Factors(const ChainSizes& sizes, const Parameters& parameters, bool backward, const Kernels& kernel = kernels());

    const ChainSizes& sizes;
    const Kernels& kernel;
    TileShape shape;
    std::vector<Tile> tiles;
    std::vector<Chunk> chunks;
    std::vector<Wave> waves;
    int64_t most_rows, most_chunks;  // of any wave

    PackedFactor packed(int64_t factor);
    Links links(int64_t factor) const;
    Workspace workspace();  // the calling thread's

    // body(tile) for every tile of the wave, or body(chunk), shared between the threads of the enclosing parallel
    // region; ends with a barrier.
    template <class Body>
    void each_tile(const Wave& wave, const Body& body) {
        share_.each(wave.tile_end - wave.tile_begin, [&](int64_t i) { body(tiles[wave.tile_begin + i]); });
    }
    template <class Body>
    void each_chunk(const Wave& wave, const Body& body) {
        share_.each(wave.chunk_end - wave.chunk_begin, [&](int64_t i) { body(i, chunks[wave.chunk_begin + i]); });
    }

    // One factor over a wave. Pointers are to the wave's first row, but for `written`: where tokens have rows of a
    // table, the factor's link weights [symbols, links], and the inputs are not looked at.
    void forward(int64_t factor, const Wave& wave, const float* inputs, const float* written, const float* first_values,
                 const float* values, float* out);

private:
    void plan();
    void pack(int64_t factor);

    const Parameters parameters_;
    const int64_t work_floats_;
    const bool backward_;
    const int64_t factor_floats_;
    Buffer work_, packed_;
    std::vector<Run> runs_;
    Share share_;
};

}  // namespace paramixer
