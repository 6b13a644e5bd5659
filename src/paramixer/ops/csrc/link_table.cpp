#include "link_table.h"

#include <algorithm>

namespace paramixer {
namespace {

// The sizes of a chain whose only sequence is the table.
ChainSizes make_table_sizes(ChainSizes sizes) {
    sizes.batch = 1;
    sizes.length = sizes.table_rows;
    sizes.lengths = nullptr;
    sizes.row_ids = nullptr;
    return sizes;
}

// The most tokens of a span, and the groups of one piece of work.
constexpr int64_t span_tokens = 256, groups_per_task = 64;

}  // namespace

LinkTable::LinkTable(const ChainPlan& tokens, const Parameters& parameters, const float* inputs, ChainPlan::Pass pass)
    : tokens_plan_(tokens),
      sizes_(tokens.sizes),
      table_sizes_(make_table_sizes(sizes_)),
      inputs_(inputs),
      plan_(table_sizes_, parameters, pass, tokens.kernel),
      floats_(sizes_.table_rows * sizes_.links),
      weights_(floats_ * sizes_.factors + plan_.shape.padded_links),
      sums_(plan_.shape, pass == ChainPlan::Pass::backward ? sizes_.factors : 0,
            pass == ChainPlan::Pass::backward ? plan_.most_chunks : 0),
      dweights_(pass == ChainPlan::Pass::backward ? floats_ * sizes_.factors : 0),
      queue_(max_threads()) {
    if (pass == ChainPlan::Pass::backward) group_tokens();
}

void LinkTable::compute_weights() {
    for (const Wave& wave : plan_.waves)
        plan_.for_each_tile(wave, [&](const Tile& tile) {
            for (int64_t factor = 0; factor < sizes_.factors; ++factor)
                plan_.kernel.mlp(plan_.context(factor), tile.count, inputs_ + tile.start * sizes_.inputs,
                                 weights_.data() + factor * floats_ + tile.start * sizes_.links);
        });
}

void LinkTable::group_tokens() {
    const std::vector<Wave>& waves = tokens_plan_.waves;
    // Two stable counting sorts: by row, then by wave.
    std::vector<int64_t> begin(sizes_.table_rows + 1), wave_of(sizes_.batch, -1), place(waves.size() + 1);
    int64_t count = 0;
    const auto each_token = [&](const auto& body) {
        for (int64_t b = 0; b < sizes_.batch; ++b)
            for (int64_t t = 0; t < (sizes_.lengths ? sizes_.lengths[b] : sizes_.length); ++t)
                body(b * sizes_.length + t);
    };
    each_token([&](int64_t token) { ++begin[sizes_.row_ids[token] + 1], ++count; });
    for (int64_t row = 0; row < sizes_.table_rows; ++row) begin[row + 1] += begin[row];
    std::vector<int64_t> by_row(count);
    each_token([&](int64_t token) { by_row[begin[sizes_.row_ids[token]]++] = token; });

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
            const int64_t row = sizes_.row_ids[tokens_[i]], first = static_cast<int64_t>(spans_.size());
            for (end = i; end < wave_begin[wave + 1] && sizes_.row_ids[tokens_[end]] == row;) {
                const int64_t begin = end, next_sequence = (tokens_[begin] / sizes_.length + 1) * sizes_.length;
                const int64_t most = std::min(begin + span_tokens, wave_begin[wave + 1]);
                while (end < most && tokens_[end] < next_sequence && sizes_.row_ids[tokens_[end]] == row) ++end;
                spans_.push_back({begin, end});
            }
            groups_.push_back({row, first, static_cast<int64_t>(spans_.size())});
        }
        group_begin_.push_back(static_cast<int64_t>(groups_.size()));
    }
}

void LinkTable::add_gradients(int64_t factor, const Wave& wave, float* dweights) {
    const int64_t ld = plan_.shape.padded_links, number = &wave - tokens_plan_.waves.data();
    const int64_t begin = group_begin_[number], end = group_begin_[number + 1];
    // Rows are numbered from the start of the batch.
    const Matrix rows = {dweights - wave.row_begin * ld, ld};
    queue_.run((end - begin + groups_per_task - 1) / groups_per_task, [&](int64_t i) {
        const int64_t from = begin + i * groups_per_task, to = std::min(from + groups_per_task, end);
        for (int64_t g = from; g < to; ++g) {
            const Group& group = groups_[g];
            plan_.kernel.sum_rows(rows, {tokens_.data(), spans_.data() + group.begin, group.end - group.begin},
                                  sizes_.links, dweights_.data() + factor * floats_ + group.row * sizes_.links);
        }
    });
}

void LinkTable::backward(const ChainGradients& gradients) {
    for (int64_t factor = 0; factor < sizes_.factors; ++factor)
        for (const Wave& wave : plan_.waves)
            plan_.mlp_backward(factor, wave, {inputs_, dweights_.data() + factor * floats_, gradients.inputs},
                               factor == 0 ? Write::set : Write::add, sums_, gradients);
}

}  // namespace paramixer
