#include "table_rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "work_queue.h"

namespace paramixer {
namespace {

using Pair = TokensByRow::Pair;

// Floats that are summed in registers: one cache line.
constexpr int64_t stripe = 16;
// How far ahead rows are fetched: about as many cache misses as a core has under way.
constexpr int64_t ahead = 16;

// Bits of a digit of the radix sort: its counters fit into half of the first cache.
constexpr int digit_bits = 11;
constexpr int64_t buckets = int64_t{1} << digit_bits;

struct Slice {
    int64_t begin, end;
};

Slice slice_of(int64_t count, int64_t number, int64_t slices) {
    return {count * number / slices, count * (number + 1) / slices};
}

// One stable pass over items in slices: each(slice, visit) visits the pairs of a slice. Counts, then writes to `to`;
// returns how many pairs there are. The order does not depend on the number of slices.
template <class Each>
int64_t scatter(int64_t slices, int shift, const Each& each, Pair* to, std::vector<int64_t>& places) {
    std::fill(places.begin(), places.end(), 0);
    const auto bucket = [shift](const Pair& pair) { return (pair.row >> shift) & (buckets - 1); };
#pragma omp parallel for schedule(static)
    for (int64_t slice = 0; slice < slices; ++slice) {
        int64_t* const own = places.data() + slice * buckets;
        each(slice, [&](const Pair& pair) { ++own[bucket(pair)]; });
    }
    int64_t total = 0;
    for (int64_t number = 0; number < buckets; ++number)
        for (int64_t slice = 0; slice < slices; ++slice) {
            int64_t& place = places[slice * buckets + number];
            const int64_t count = place;
            place = total;
            total += count;
        }
#pragma omp parallel for schedule(static)
    for (int64_t slice = 0; slice < slices; ++slice) {
        int64_t* const own = places.data() + slice * buckets;
        each(slice, [&](const Pair& pair) { to[own[bucket(pair)]++] = pair; });
    }
    return total;
}

template <int64_t Columns>
void add_row(const float* from, int64_t columns, float* to) {
    for (int64_t c = 0; c < (Columns ? Columns : columns); ++c) to[c] += from[c];
}

template <int64_t Columns>
void add_row(float weight, const float* from, int64_t columns, float* to) {
    for (int64_t c = 0; c < (Columns ? Columns : columns); ++c) to[c] += weight * from[c];
}

// What the sums over a row's tokens read.
struct Grads {
    const float* rows;  // [tokens, width]
    int64_t width;
    uint32_t orders;
    const float* weights;  // [tokens, orders], or null

    const float* row(const Pair& pair) const { return rows + static_cast<int64_t>(pair.entry / orders) * width; }
};

// The sum of `columns` floats of the tokens' rows: in single precision over a block of tokens, in double over blocks,
// so that a row with a million tokens is summed as well as one with ten. `left` pairs may be looked at.
template <int64_t Columns>
void sum_tokens(const Pair* pairs, int64_t count, int64_t left, const Grads& grads, int64_t columns, float* out) {
    constexpr int64_t block = 64;
    double totals[stripe] = {};
    for (int64_t begin = 0; begin < count; begin += block) {
        float sums[stripe] = {};
        for (int64_t i = begin; i < std::min(count, begin + block); ++i) {
            const Pair& later = pairs[std::min(i + ahead, left - 1)];
            __builtin_prefetch(grads.row(later));
            if (grads.weights) {
                __builtin_prefetch(grads.weights + later.entry);
                add_row<Columns>(grads.weights[pairs[i].entry], grads.row(pairs[i]), columns, sums);
            } else {
                add_row<Columns>(grads.row(pairs[i]), columns, sums);
            }
        }
        if (count <= block) {
            std::copy(sums, sums + columns, out);
            return;
        }
        for (int64_t c = 0; c < columns; ++c) totals[c] += sums[c];
    }
    for (int64_t c = 0; c < columns; ++c) out[c] = static_cast<float>(totals[c]);
}

// `left` rows may be looked at.
template <int64_t Columns>
void add_table_rows(const int32_t* rows, const float* weights, int64_t orders, int64_t left, const float* table,
                    int64_t width, int64_t columns, float* out) {
    float sums[stripe] = {};
    for (int64_t k = 0; k < orders; ++k) {
        const int32_t later = rows[std::min(k + ahead, left - 1)];
        if (later >= 0) __builtin_prefetch(table + later * width);
        if (rows[k] < 0) continue;
        if (weights)
            add_row<Columns>(weights[k], table + rows[k] * width, columns, sums);
        else
            add_row<Columns>(table + rows[k] * width, columns, sums);
    }
    std::copy(sums, sums + columns, out);
}

template <int64_t Columns>
void update_stripe(const float* __restrict grad, int64_t columns, const AdamWStep& s, const TableState& row) {
    float* __restrict weights = row.weights;
    float* __restrict means = row.mean;
    float* __restrict squares = row.square;
    for (int64_t c = 0; c < (Columns ? Columns : columns); ++c) {
        const float mean = means[c] + s.gain1 * (grad[c] - means[c]);
        const float square = squares[c] * s.beta2 + s.gain2 * grad[c] * grad[c];
        means[c] = mean;
        squares[c] = square;
        weights[c] = weights[c] * s.decay - s.size * (mean / (std::sqrt(square) / s.scale + s.eps));
    }
}

}  // namespace

int64_t round_up(int64_t count) {
    int64_t size = 1;
    while (size < count) size *= 2;
    return size;
}

void bag(const BagSizes& sizes, const int32_t* rows, const float* weights, const float* table, float* out) {
    const int64_t orders = sizes.orders, width = sizes.width;
#pragma omp parallel for schedule(static)
    for (int64_t token = 0; token < sizes.tokens; ++token) {
        const int32_t* const own = rows + token * orders;
        const float* const own_weights = weights ? weights + token * orders : nullptr;
        const int64_t left = (sizes.tokens - token) * orders;
        for (int64_t begin = 0; begin < width; begin += stripe) {
            const int64_t columns = std::min(stripe, width - begin);
            float* const to = out + token * width + begin;
            if (columns == stripe)
                add_table_rows<stripe>(own, own_weights, orders, left, table + begin, width, columns, to);
            else
                add_table_rows<0>(own, own_weights, orders, left, table + begin, width, columns, to);
        }
    }
}

TokensByRow::TokensByRow(const BagSizes& sizes, const int32_t* rows)
    : sizes_(sizes),
      sorted_(2 * round_up(sizes.tokens * sizes.orders)),
      unsorted_(2 * round_up(sizes.tokens * sizes.orders)),
      ends_(round_up(sizes.tokens * sizes.orders)) {
    static_assert(sizeof(Pair) == 2 * sizeof(float), "buffers are counted in floats");
    sort(rows);
    find_ends();
}

void TokensByRow::sort(const int32_t* rows) {
    const int64_t orders = sizes_.orders, slices = max_threads();
    Pair* from = reinterpret_cast<Pair*>(unsorted_.data());
    Pair* to = reinterpret_cast<Pair*>(sorted_.data());
    // First each slice's pairs without those of no row, of which padded batches are full; again without a branch.
    std::vector<int64_t> counts(slices), places(slices * buckets);
    std::vector<int32_t> largest(slices, -1);
#pragma omp parallel for schedule(static)
    for (int64_t slice = 0; slice < slices; ++slice) {
        const Slice own = slice_of(sizes_.tokens, slice, slices);
        Pair* const pairs = from + own.begin * orders;
        int64_t count = 0;
        int32_t most = -1;
        for (int64_t token = own.begin; token < own.end; ++token)
            for (int64_t k = 0; k < orders; ++k) {
                const int32_t row = rows[token * orders + k];
                pairs[count] = {static_cast<uint32_t>(row), static_cast<uint32_t>(token * orders + k)};
                count += row >= 0;
                most = std::max(most, row);
            }
        counts[slice] = count;
        largest[slice] = most;
    }
    const int32_t last = *std::max_element(largest.begin(), largest.end());
    if (last < 0) return;
    const auto given = [&](int64_t slice, const auto& visit) {
        const Pair* const pairs = from + slice_of(sizes_.tokens, slice, slices).begin * orders;
        for (int64_t i = 0; i < counts[slice]; ++i) visit(pairs[i]);
    };
    pairs_ = scatter(slices, 0, given, to, places);
    for (int shift = digit_bits; shift < 32 && last >> shift; shift += digit_bits) {
        std::swap(from, to);
        const auto again = [&](int64_t slice, const auto& visit) {
            const Slice own = slice_of(pairs_, slice, slices);
            for (int64_t i = own.begin; i < own.end; ++i) visit(from[i]);
        };
        scatter(slices, shift, again, to, places);
    }
    pairs_by_row_ = to;
}

void TokensByRow::find_ends() {
    // Without a branch, which would be mispredicted for every few pairs; threads would not make it faster.
    uint32_t* const ends = reinterpret_cast<uint32_t*>(ends_.data());
    const Pair* const pairs = pairs_by_row_;
    for (int64_t i = 0; i < pairs_; ++i) {
        ends[distinct_] = static_cast<uint32_t>(i + 1);
        distinct_ += i + 1 == pairs_ || pairs[i].row != pairs[i + 1].row;
    }
}

void TokensByRow::sum(const float* grad, const float* weights, int64_t* rows, float* sums) {
    const int64_t width = sizes_.width;
    const uint32_t* const ends = reinterpret_cast<const uint32_t*>(ends_.data());
#pragma omp parallel for schedule(dynamic, 256)
    for (int64_t number = 0; number < distinct_; ++number) {
        const int64_t first = number ? ends[number - 1] : 0;
        const Pair* const pairs = pairs_by_row_ + first;
        const int64_t count = ends[number] - first, left = pairs_ - first;
        rows[number] = pairs[0].row;
        for (int64_t begin = 0; begin < width; begin += stripe) {
            const int64_t columns = std::min(stripe, width - begin);
            const Grads grads = {grad + begin, width, static_cast<uint32_t>(sizes_.orders), weights};
            float* const to = sums + number * width + begin;
            if (columns == stripe)
                sum_tokens<stripe>(pairs, count, left, grads, columns, to);
            else
                sum_tokens<0>(pairs, count, left, grads, columns, to);
        }
    }
}

void update_rows(int64_t count, int64_t width, const int64_t* rows, const float* grads, const AdamWStep& step,
                 const TableState& state) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; ++i) {
        const int64_t next = rows[std::min(i + ahead, count - 1)] * width;
        for (float* table : {state.weights, state.mean, state.square}) __builtin_prefetch(table + next, 1);
        for (int64_t begin = 0; begin < width; begin += stripe) {
            const int64_t columns = std::min(stripe, width - begin), at = rows[i] * width + begin;
            const TableState row = {state.weights + at, state.mean + at, state.square + at};
            if (columns == stripe)
                update_stripe<stripe>(grads + i * width + begin, columns, step, row);
            else
                update_stripe<0>(grads + i * width + begin, columns, step, row);
        }
    }
}

}  // namespace paramixer
