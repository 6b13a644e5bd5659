#include "tiles.h"

#include <algorithm>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace paramixer {

std::vector<Tile> make_tiles(int64_t batch, int64_t length, const int64_t* lengths, int64_t tokens) {
    std::vector<Tile> tiles;
    for (int64_t b = 0; b < batch; ++b) {
        const int64_t own = lengths ? lengths[b] : length;
        for (int64_t start = 0; start < own; start += tokens)
            tiles.push_back({b, start, std::min(tokens, own - start), own});
    }
    return tiles;
}

void zero_past_lengths(int64_t batch, int64_t length, const int64_t* lengths, int64_t width, float* rows) {
    if (lengths == nullptr) return;
#pragma omp parallel for schedule(dynamic)
    for (int64_t b = 0; b < batch; ++b)
        std::fill(rows + (b * length + lengths[b]) * width, rows + (b + 1) * length * width, 0.0f);
}

int max_threads() {
#if defined(_OPENMP)
    return omp_get_max_threads();
#else
    return 1;
#endif
}

int thread_count() {
#if defined(_OPENMP)
    return omp_get_num_threads();
#else
    return 1;
#endif
}

int thread_number() {
#if defined(_OPENMP)
    return omp_get_thread_num();
#else
    return 0;
#endif
}

}  // namespace paramixer
