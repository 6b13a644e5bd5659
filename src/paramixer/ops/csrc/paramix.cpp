#include <optional>

#include "factors.h"
#include "written.h"

namespace paramixer {

int64_t kept_count(const ChainSizes& sizes) { return sizes.keep > 0 ? (sizes.factors - 1) / sizes.keep : 0; }

void paramix(const ChainSizes& sizes, const float* inputs, const float* values, const Parameters& parameters,
             float* out, float* kept) {
    const int64_t floats = sizes.batch * sizes.length * sizes.channels, last = sizes.factors - 1;
    Factors factors(sizes, parameters, false);
    std::optional<Written> written;
    if (sizes.ids) written.emplace(factors, parameters, inputs, false);
    Buffer passing(last > 0 && sizes.keep != 1 ? factors.most_rows * sizes.channels : 0);

#pragma omp parallel
    {
        if (written) written->write();
        for (const Wave& wave : factors.waves) {
            const int64_t at = wave.row_begin * sizes.channels;
            // What is not kept passes through two buffers in turn, `out` being the one the last factor writes.
            const auto output_of = [&](int64_t factor) {
                if (sizes.keep > 0 && factor < last && (factor + 1) % sizes.keep == 0)
                    return kept + ((factor + 1) / sizes.keep - 1) * floats + at;
                return (last - factor) % 2 == 0 ? out + at : passing.data();
            };
            for (int64_t factor = 0; factor <= last; ++factor)
                factors.forward(factor, wave, written ? nullptr : inputs + wave.row_begin * sizes.inputs,
                                written ? written->weights(factor) : nullptr, values + at,
                                factor == 0 ? values + at : output_of(factor - 1), output_of(factor));
        }
    }
    zero_past_lengths(sizes.batch, sizes.length, sizes.lengths, sizes.channels, out);
}

}  // namespace paramixer
