// How the tiles of a chain are divided: into chunks, whose parameter gradients are summed on their own, and into waves,
// which go through all factors one after the other.
#pragma once

#include <vector>

#include "kernels.h"
#include "work_queue.h"

namespace paramixer {

// Consecutive tiles of one sequence, whose parameter gradients are summed before they are added to those of others.
struct Chunk {
    int64_t begin, end;  // tiles
};

// Consecutive sequences that go through all factors together.
struct Wave {
    int64_t tile_begin, tile_end, chunk_begin, chunk_end;
    int64_t row_begin, rows;  // in [sequences * length]

    int64_t chunks() const { return chunk_end - chunk_begin; }
};

class WavePlan {
public:
    // `token_bytes` are those of a token that should stay in the outer caches from factor to factor.
    WavePlan(std::vector<Tile> tiles, int64_t length, int64_t token_bytes);

    std::vector<Tile> tiles;
    std::vector<Chunk> chunks;
    std::vector<Wave> waves;
    int64_t most_rows = 0, most_chunks = 0;  // of any wave

    // body(tile) for every tile of the wave. Called by every thread of a parallel region, which share the work; ends
    // with a barrier.
    template <class Body>
    void for_each_tile(const Wave& wave, const Body& body) {
        queue_.run(wave.tile_end - wave.tile_begin, [&](int64_t i) { body(tiles[wave.tile_begin + i]); });
    }

    // The same chunk by chunk: body(tile, sums, write), with the chunk's sums and Write::set for its first tile.
    template <class Sums, class Body>
    void for_each_chunk(const Wave& wave, Sums& sums, const Body& body) {
        queue_.run(wave.chunks(), [&](int64_t number) {
            const Chunk& chunk = chunks[wave.chunk_begin + number];
            const GradientSums into = sums.chunk(number);
            for (int64_t i = chunk.begin; i < chunk.end; ++i)
                body(tiles[i], into, i == chunk.begin ? Write::set : Write::add);
        });
    }

private:
    WorkQueue queue_;
};

}  // namespace paramixer
