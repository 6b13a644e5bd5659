// Link weights of a table: where tokens share their link inputs, the links of a row are computed once, however many
// tokens have it.
#pragma once

#include <vector>

#include "chain_plan.h"
#include "chunk_sums.h"
#include "engine.h"
#include "memory.h"
#include "work_queue.h"

namespace paramixer {

// The methods that compute are called by every thread of a parallel region; each ends with a barrier.
class LinkTable {
public:
    // `inputs` is the table [rows, inputs].
    LinkTable(const ChainPlan& tokens, const Parameters& parameters, const float* inputs, ChainPlan::Pass pass);

    // The link weights of all rows and factors; call this first.
    void compute_weights();

    // One factor's, [rows, links]; whole vectors may be read from any row.
    const float* weights(int64_t factor) { return weights_.data() + factor * floats_; }

    // Adds the gradients of a wave's link weights, rows of padded_links floats.
    void add_gradients(int64_t factor, const Wave& wave, float* dweights);

    // From the sums to the gradients of the table and the parameters.
    void backward(const ChainGradients& gradients);

private:
    // All tokens of one wave that have one row, in spans_[begin .. end].
    struct Group {
        int64_t row, begin, end;
    };
    // Lists the tokens of every row, in the order in which their gradients are added.
    void group_tokens();

    const ChainPlan& tokens_plan_;
    const ChainSizes& sizes_;
    const ChainSizes table_sizes_;  // the table as a single sequence
    const float* const inputs_;
    ChainPlan plan_;  // of the table
    const int64_t floats_;
    Buffer weights_;
    ChunkSums sums_;
    std::vector<float> dweights_;  // [factors, rows, links]
    std::vector<int64_t> tokens_;  // by wave, then by row, then in their order
    // Some of one sequence's tokens that have one row. The sums do not depend on the waves, which depend on the number
    // of threads; and short sums stay accurate if one row has a million tokens.
    std::vector<Span> spans_;
    std::vector<Group> groups_;
    std::vector<int64_t> group_begin_;  // of every wave, and the end
    WorkQueue queue_;
};

}  // namespace paramixer
