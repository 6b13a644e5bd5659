#include "waves.h"

#include <algorithm>

#include "tiles.h"

namespace paramixer {

// A wave's inputs and values should stay in the outer caches from factor to factor, and yet keep every thread busy.
// Only the waves depend on the number of threads; a chunk belongs to one sequence, so no sum depends on it.
WavePlan::WavePlan(std::vector<Tile> all_tiles, int64_t length, int64_t token_bytes)
    : tiles(std::move(all_tiles)), queue_(max_threads()) {
    constexpr int64_t cache_bytes = 3 << 20, most_sequences = 256, most_chunks_per_sequence = 64;
    const int64_t least_tiles = 8 * max_threads();
    int64_t sequences = 0, tokens = 0;
    for (int64_t begin = 0, end; begin < static_cast<int64_t>(tiles.size()); begin = end) {
        const Tile& first = tiles[begin];
        end = begin + (first.length + tile_tokens - 1) / tile_tokens;
        const bool fits = !waves.empty() && sequences < most_sequences &&
                          ((tokens + first.length) * token_bytes <= cache_bytes ||
                           waves.back().tile_end - waves.back().tile_begin < least_tiles);
        if (!fits) {
            const int64_t chunk = static_cast<int64_t>(chunks.size());
            waves.push_back({begin, begin, chunk, chunk, first.batch * length, 0});
            sequences = tokens = 0;
        }
        const int64_t per_chunk =
            std::max<int64_t>(2, (end - begin + most_chunks_per_sequence - 1) / most_chunks_per_sequence);
        for (int64_t tile = begin; tile < end; tile += per_chunk)
            chunks.push_back({tile, std::min(tile + per_chunk, end)});
        Wave& wave = waves.back();
        wave.tile_end = end;
        wave.chunk_end = static_cast<int64_t>(chunks.size());
        wave.rows = (first.batch + 1) * length - wave.row_begin;
        most_rows = std::max(most_rows, wave.rows);
        most_chunks = std::max(most_chunks, wave.chunks());
        sequences += 1;
        tokens += first.length;
    }
}

}  // namespace paramixer
