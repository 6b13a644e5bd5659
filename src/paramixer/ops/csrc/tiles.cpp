#include "tiles.h"

#include <algorithm>

namespace paramixer {

std::vector<Tile> make_tiles(int64_t batch, int64_t length, const int64_t* lengths, int64_t tokens) {
    std::vector<Tile> tiles;
    for (int64_t b = 0; b < batch; ++b) {
        const int64_t count = lengths ? lengths[b] : length;
        for (int64_t start = 0; start < count; start += tokens)
            tiles.push_back({b, start, std::min(tokens, count - start), count});
    }
    return tiles;
}

void zero_past_lengths(int64_t batch, int64_t length, const int64_t* lengths, int64_t width, float* rows) {
    if (lengths == nullptr) return;
#pragma omp parallel for schedule(dynamic)
    for (int64_t b = 0; b < batch; ++b)
        std::fill(rows + (b * length + lengths[b]) * width, rows + (b + 1) * length * width, 0.0f);
}

}  // namespace paramixer
