#include "written.h"

#include <algorithm>

namespace paramixer {
namespace {

ChainSizes table_sizes(ChainSizes sizes) {
    sizes.batch = 1;
    sizes.length = sizes.symbols;
    sizes.lengths = nullptr;
    sizes.ids = nullptr;
    return sizes;
}

// So many tokens are added up before they are added to others, and so many rows of the table at a time.
constexpr int64_t tokens_together = 256, groups_together = 64;

}  // namespace

Written::Written(const Factors& tokens, const Parameters& parameters, const float* inputs, bool backward)
    : of_tokens_(tokens),
      sizes_(tokens.sizes),
      rows_(table_sizes(sizes_)),
      inputs_(inputs),
      factors_(rows_, parameters, backward, tokens.kernel),
      floats_(sizes_.symbols * sizes_.links),
      weights_(floats_ * sizes_.factors + factors_.shape.padded_links),
      sums_(factors_.shape, backward ? sizes_.factors : 0, backward ? factors_.most_chunks : 0),
      dweights_(backward ? floats_ * sizes_.factors : 0),
      share_(max_threads()) {
    if (backward) group();
}

void Written::write() {
    const Workspace work = factors_.workspace();
    for (const Wave& wave : factors_.waves)
        factors_.each_tile(wave, [&](const Tile& tile) {
            for (int64_t factor = 0; factor < sizes_.factors; ++factor)
                factors_.kernel.mlp(factors_.shape, factors_.packed(factor), tile.count,
                                    inputs_ + tile.start * sizes_.inputs,
                                    weights_.data() + factor * floats_ + tile.start * sizes_.links, work);
        });
}

void Written::group() {
    const std::vector<Wave>& waves = of_tokens_.waves;
    // Sorted by row, then by wave; both keep the order of what is equal.
    std::vector<int64_t> begin(sizes_.symbols + 1), wave_of(sizes_.batch, -1), place(waves.size() + 1);
    int64_t count = 0;
    const auto each_token = [&](const auto& body) {
        for (int64_t b = 0; b < sizes_.batch; ++b)
            for (int64_t t = 0; t < (sizes_.lengths ? sizes_.lengths[b] : sizes_.length); ++t) body(b * sizes_.length + t);
    };
    each_token([&](int64_t token) { ++begin[sizes_.ids[token] + 1], ++count; });
    for (int64_t row = 0; row < sizes_.symbols; ++row) begin[row + 1] += begin[row];
    std::vector<int64_t> by_row(count);
    each_token([&](int64_t token) { by_row[begin[sizes_.ids[token]]++] = token; });

    for (size_t wave = 0; wave < waves.size(); ++wave)
        for (int64_t row = waves[wave].row_begin; row < waves[wave].row_begin + waves[wave].rows; row += sizes_.length)
            wave_of[row / sizes_.length] = static_cast<int64_t>(wave);
    for (int64_t token : by_row) ++place[wave_of[token / sizes_.length] + 1];
    for (size_t wave = 0; wave < waves.size(); ++wave) place[wave + 1] += place[wave];
    const std::vector<int64_t> wave_begin = place;
    tokens_.resize(count);
    for (int64_t token : by_row) tokens_[place[wave_of[token / sizes_.length]]++] = token;

    group_begin_.push_back(0);
    for (size_t wave = 0; wave < waves.size(); ++wave) {
        for (int64_t i = wave_begin[wave], end; i < wave_begin[wave + 1]; i = end) {
            const int64_t row = sizes_.ids[tokens_[i]], first = static_cast<int64_t>(spans_.size());
            for (end = i; end < wave_begin[wave + 1] && sizes_.ids[tokens_[end]] == row;) {
                const int64_t begin = end, next_sequence = (tokens_[begin] / sizes_.length + 1) * sizes_.length;
                const int64_t most = std::min(begin + tokens_together, wave_begin[wave + 1]);
                while (end < most && tokens_[end] < next_sequence && sizes_.ids[tokens_[end]] == row) ++end;
                spans_.push_back({begin, end});
            }
            groups_.push_back({row, first, static_cast<int64_t>(spans_.size())});
        }
        group_begin_.push_back(static_cast<int64_t>(groups_.size()));
    }
}

void Written::add(int64_t factor, const Wave& wave, const float* dweights) {
    const int64_t step = factors_.shape.padded_links, number = &wave - of_tokens_.waves.data();
    const int64_t begin = group_begin_[number], end = group_begin_[number + 1];
    share_.each((end - begin + groups_together - 1) / groups_together, [&](int64_t i) {
        const int64_t from = begin + i * groups_together, to = std::min(from + groups_together, end);
        for (int64_t g = from; g < to; ++g) {
            const Group& group = groups_[g];
            factors_.kernel.add_rows_of(dweights - wave.row_begin * step, step, tokens_.data(),
                                        spans_.data() + group.begin, group.end - group.begin, sizes_.links,
                                        dweights_.data() + factor * floats_ + group.row * sizes_.links);
        }
    });
}

void Written::backward(const ChainGradients& gradients) {
    const Workspace work = factors_.workspace();
    for (int64_t factor = 0; factor < sizes_.factors; ++factor) {
        const PackedFactor part = factors_.packed(factor);
        for (const Wave& wave : factors_.waves) {
            factors_.each_chunk(wave, [&](int64_t number, const Chunk& chunk) {
                for (int64_t i = chunk.begin; i < chunk.end; ++i) {
                    const Tile& tile = factors_.tiles[i];
                    factors_.kernel.mlp_backward(
                        factors_.shape, part, tile.count, inputs_ + tile.start * sizes_.inputs,
                        dweights_.data() + factor * floats_ + tile.start * sizes_.links,
                        gradients.inputs + tile.start * sizes_.inputs, factor == 0, sums_.chunk(number),
                        i == chunk.begin, work);
                }
            });
            sums_.reduce(factor, wave.chunk_end - wave.chunk_begin, gradients);
#pragma omp barrier
        }
    }
}

}  // namespace paramixer
