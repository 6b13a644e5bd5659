// Rows of a large table: their sums, the sums of their gradients, and AdamW on them. As in engine.h nothing throws but
// std::bad_alloc. Results have the same bits for any number of threads.
#pragma once

#include <cstdint>

#include "memory.h"

namespace paramixer {

// The next power of two. With memory of such sizes batches of all lengths find theirs in the cache; fresh memory would
// cost as much time as the sort.
int64_t round_up(int64_t count);

struct BagSizes {
    int64_t tokens, orders, width;
};

// out [tokens, width] = the sum of the rows [tokens, orders] of the table [.., width], each times its weight if there
// are weights [tokens, orders] (or null); -1 adds nothing.
void bag(const BagSizes& sizes, const int32_t* rows, const float* weights, const float* table, float* out);

// The tokens of every row, found by a radix sort of (row, entry): its cost follows the tokens, not the table.
class TokensByRow {
public:
    // rows [tokens, orders], fewer than 2^32 in all.
    TokensByRow(const BagSizes& sizes, const int32_t* rows);

    int64_t distinct() const { return distinct_; }

    // rows [distinct], ascending; sums [distinct, width] of grad [tokens, width] over each row's tokens, each times its
    // weight if there are weights [tokens, orders] (or null).
    void sum(const float* grad, const float* weights, int64_t* rows, float* sums);

    struct Pair {
        uint32_t row, entry;  // a number in rows, and where it stands there: entry / orders is the token
    };

private:
    void sort(const int32_t* rows);
    void find_ends();

    const BagSizes sizes_;
    int64_t pairs_ = 0, distinct_ = 0;
    Buffer sorted_, unsorted_, ends_;
    Pair* pairs_by_row_ = nullptr;
};

// AdamW's factors after bias correction; see AdamWStep in Python. The gains are 1 - beta, rounded once.
struct AdamWStep {
    float decay, gain1, beta2, gain2, size, scale, eps;
};

struct TableState {
    float *weights, *mean, *square;  // [.., width]: the table and its two moments
};

// rows [count], each once, and grads [count, width].
void update_rows(int64_t count, int64_t width, const int64_t* rows, const float* grads, const AdamWStep& step,
                 const TableState& state);

}  // namespace paramixer
