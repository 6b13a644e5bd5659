// All sequences' tokens as one flat list of tiles, so that a batch of one keeps every core busy and padding costs
// nothing. The list depends on sizes alone, never on the number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels.h"

namespace paramixer {

// 16 blocks of 6 rows in the products: short enough that a narrow tile's intermediates stay in L1, long enough that the
// hardware, which has to detect every link's stream of rows in each tile, prefetches most of it.
constexpr int64_t tile_tokens = 96;

std::vector<Tile> make_tiles(int64_t batch, int64_t length, const int64_t* lengths, int64_t tokens);

// Sets the rows past each sequence's length to zero; a row has `width` floats.
void zero_past_lengths(int64_t batch, int64_t length, const int64_t* lengths, int64_t width, float* rows);

}  // namespace paramixer
