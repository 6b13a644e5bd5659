#include "factors.h"

namespace paramixer {

int64_t kept_count(const ChainSizes& sizes) { return sizes.keep > 0 ? (sizes.factors - 1) / sizes.keep : 0; }

void paramix(const ChainSizes& sizes, const float* inputs, const float* values, const Parameters& parameters,
             float* out, float* kept) {
    const int64_t floats = sizes.batch * sizes.length * sizes.channels, last = sizes.factors - 1;
    Factors factors(sizes, parameters, false);
    Buffer passing(last > 0 && sizes.keep != 1 ? floats : 0);
    prefer_huge_pages(out, floats * sizeof(float));
    if (kept) prefer_huge_pages(kept, kept_count(sizes) * floats * sizeof(float));

    // What is not kept passes through two buffers in turn, `out` being the one the last factor writes.
    const auto output_of = [&](int64_t factor) {
        if (sizes.keep > 0 && factor < last && (factor + 1) % sizes.keep == 0)
            return kept + ((factor + 1) / sizes.keep - 1) * floats;
        return (last - factor) % 2 == 0 ? out : passing.data();
    };
#pragma omp parallel
    for (int64_t factor = 0; factor <= last; ++factor)
        factors.forward(factor, inputs, values, factor == 0 ? values : output_of(factor - 1), output_of(factor));
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, sizes.channels, out);
}

}  // namespace paramixer
