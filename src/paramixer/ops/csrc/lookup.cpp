// The gradient of a table of embeddings: every row's sum over the tokens that looked it up.
#include <algorithm>
#include <vector>

#include "engine.h"

namespace paramixer {

void lookup_backward(int64_t tokens, int64_t rows, int64_t channels, const int64_t* ids, const float* grad, float* dtable) {
    // A cache line of every token's gradient: stripes are independent, and each adds in the order of the tokens, in
    // double precision, so neither threads nor a million tokens of one kind matter.
    constexpr int64_t stripe = 16;
#pragma omp parallel
    {
        std::vector<double> sums(rows * stripe);
#pragma omp for schedule(dynamic)
        for (int64_t begin = 0; begin < channels; begin += stripe) {
            const int64_t width = std::min(stripe, channels - begin);
            std::fill(sums.begin(), sums.end(), 0.0);
            for (int64_t token = 0; token < tokens; ++token) {
                const float* const from = grad + token * channels + begin;
                double* const to = sums.data() + ids[token] * stripe;
                if (width == stripe)
                    for (int64_t c = 0; c < stripe; ++c) to[c] += from[c];
                else
                    for (int64_t c = 0; c < width; ++c) to[c] += from[c];
            }
            for (int64_t row = 0; row < rows; ++row)
                for (int64_t c = 0; c < width; ++c)
                    dtable[row * channels + begin + c] = static_cast<float>(sums[row * stripe + c]);
        }
    }
}

}  // namespace paramixer
