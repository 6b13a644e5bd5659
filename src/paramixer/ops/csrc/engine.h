// The CPU engine's operations on plain float32 arrays, row-major and contiguous. Sizes, offsets and lengths must have
// been checked by the caller (bind.cpp does); nothing here throws but std::bad_alloc.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace paramixer {

enum class Residual { none, factor, block };

struct MixSizes {
    int64_t batch, length, links, channels;
    const int64_t* lengths;  // [batch], each 0..length; null: all are `length`
    bool ring;
};

struct ChainSizes {
    int64_t batch, length, inputs, hidden, links, channels, factors;
    const int64_t* lengths;  // as in MixSizes
    bool ring;
    Residual residual;
    int64_t keep;  // every keep-th factor's input is kept for the backward pass; 0 keeps none
    // Null: every token has link inputs of its own, inputs [batch, length, inputs]. Else [batch, length], each below
    // `symbols`: which row of the table inputs [symbols, inputs] it has.
    const int64_t* ids;
    int64_t symbols;
};

struct Parameters {
    const float* w1;         // [factors, inputs, hidden]
    const float* b1;         // [factors, hidden]
    const float* w2;         // [factors, hidden, links]
    const float* b2;         // [factors, links]
    const int64_t* offsets;  // [factors, links]
};

struct ChainGradients {
    float *inputs, *values, *w1, *b1, *w2, *b2;  // shaped like what they are gradients of
};

// weights [batch, length, links], values and out [batch, length, channels], offsets [links].
void link_mix(const MixSizes& sizes, const float* weights, const float* values, const int64_t* offsets, float* out);

void link_mix_backward(const MixSizes& sizes, const float* grad, const float* weights, const float* values,
                       const int64_t* offsets, float* dweights, float* dvalues);

// How many factors' inputs paramix writes to `kept`: those of factors keep, 2 keep, ... below `factors`.
int64_t kept_count(const ChainSizes& sizes);

// inputs as sizes.ids says, values and out [batch, length, channels], kept [kept_count, batch, length, channels].
// Rows of `kept` past a sequence's length are left as they were; nothing reads them.
void paramix(const ChainSizes& sizes, const float* inputs, const float* values, const Parameters& parameters,
             float* out, float* kept);

// Needs sizes.keep >= 1 and `kept` as paramix wrote it with the same sizes.
void paramix_backward(const ChainSizes& sizes, const float* grad, const float* inputs, const float* values,
                      const Parameters& parameters, const float* kept, const ChainGradients& gradients);

// A chain's MLP alone: sizes.factors is 1, sizes.links the width of `out` and `grad`, and channels, ring, residual and
// keep are not looked at; nor are the offsets and the gradient of values.
void mlp(const ChainSizes& sizes, const float* inputs, const Parameters& parameters, float* out);
void mlp_backward(const ChainSizes& sizes, const float* grad, const float* inputs, const Parameters& parameters,
                  const ChainGradients& gradients);

// dtable [rows, channels] = the sums of grad [tokens, channels] over the tokens of each id, all of which are below rows.
void lookup_backward(int64_t tokens, int64_t rows, int64_t channels, const int64_t* ids, const float* grad, float* dtable);

// out = values where an element is kept, scaled by 1 / (1 - p), else 0. Which are kept follows from (seed, element).
void dropout(int64_t count, const float* values, double p, uint64_t seed, float* out);

// Every instruction set that was compiled, the preferred one last, and whether this machine can run it.
std::vector<std::pair<std::string, bool>> instruction_sets();
std::string instruction_set();
// "auto" chooses the best; false if the name is unknown or this machine cannot run it.
bool use_instruction_set(const std::string& name);

}  // namespace paramixer
