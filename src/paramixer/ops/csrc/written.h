// Where tokens share their link inputs, the links of a row of the table are written once, however many tokens have it.
#pragma once

#include <vector>

#include "engine.h"
#include "factors.h"
#include "memory.h"
#include "sums.h"

namespace paramixer {

// The methods that work are called by every thread of a parallel region; each ends with a barrier.
class Written {
public:
    // `inputs` is the table [symbols, inputs].
    Written(const Factors& tokens, const Parameters& parameters, const float* inputs, bool backward);

    // The link weights of all rows and factors, with which everything else begins.
    void write();

    // One factor's, [symbols, links]; whole vectors may be read from any row.
    const float* weights(int64_t factor) { return weights_.data() + factor * floats_; }

    // Adds the gradients of a wave's link weights, rows of padded_links floats.
    void add(int64_t factor, const Wave& wave, const float* dweights);

    // From the sums to the gradients of the table and the parameters.
    void backward(const ChainGradients& gradients);

private:
    // All tokens of one wave that have one row, in spans_[begin .. end].
    struct Group {
        int64_t row, begin, end;
    };
    // Which tokens have which row, in the order in which their gradients are added.
    void group();

    const Factors& of_tokens_;
    const ChainSizes& sizes_;
    const ChainSizes rows_;  // the table as a single sequence
    const float* const inputs_;
    Factors factors_;
    const int64_t floats_;
    Buffer weights_;
    ChunkSums sums_;
    std::vector<float> dweights_;       // [factors, symbols, links]
    std::vector<int64_t> tokens_;       // by wave, then by row, then as they stand
    // Some of one sequence's tokens that have one row. What is added up does not depend on the waves, which depend on
    // the number of threads; and short sums stay accurate where one row has a million tokens.
    std::vector<Span> spans_;
    std::vector<Group> groups_;
    std::vector<int64_t> group_begin_;  // of every wave, and the end
    Share share_;
};

}  // namespace paramixer
