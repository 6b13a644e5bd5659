// All sequences' tokens as one flat list of tiles, so that a batch of one keeps every core busy and padding costs
// nothing. The list depends on sizes alone, never on the number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels.h"

namespace paramixer {

// 16 blocks of 6 rows in the products: short enough that a narrow tile's intermediates stay in L1, long enough that the
// hardware, which finds every link's stream of rows anew in each tile, has its prefetches under way for most of it.
constexpr int64_t tile_tokens = 96;

std::vector<Tile> make_tiles(int64_t batch, int64_t length, const int64_t* lengths, int64_t tokens);

// The rows past each sequence's length, set to zero. `width` floats a row.
void zero_past_lengths(int64_t batch, int64_t length, const int64_t* lengths, int64_t width, float* rows);

int max_threads();
int thread_number();

}  // namespace paramixer
