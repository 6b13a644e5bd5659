// The operations of the CPU backend on plain float32 arrays, row-major and contiguous. The caller (bind.cpp) has
// checked sizes, offsets and lengths; nothing here throws but std::bad_alloc, and nothing throws inside a parallel
// region.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace paramixer {

enum class Residual { none, factor, block };

struct MixSizes {
    int64_t batch, length, heads, links, channels;  // links and channels of one head
    const int64_t* lengths;                         // [batch], each 0..length; null: all are `length`
    bool ring;
};

struct ChainSizes {
    int64_t batch, length, inputs, hidden, links, channels, factors;
    const int64_t* lengths;  // as in MixSizes
    bool ring;
    Residual residual;
    int64_t checkpoint_every;  // the input of every so many factors is stored for the backward pass; 0 stores none
    // Null: inputs [batch, length, inputs]. Else [batch, length], each below `table_rows`: the token's row of the table
    // inputs [table_rows, inputs].
    const int64_t* row_ids;
    int64_t table_rows;
    // With heads, `inputs` and `channels` are those of one head, arrays of tokens are [batch, length, heads * width],
    // checkpoints [checkpoint_count, batch, heads, length, channels], and row_ids is null.
    int64_t heads;       // 0: the parameters have no axis of heads
    bool shares_inputs;  // all heads read the same inputs [batch, length, inputs]
};

// With heads, [heads, ...] each.
struct Parameters {
    const float* w1;         // [factors, inputs, hidden]
    const float* b1;         // [factors, hidden]
    const float* w2;         // [factors, hidden, links]
    const float* b2;         // [factors, links]
    const int64_t* offsets;  // [factors, links]
};

// What the backward pass of a chain reads.
struct ChainTensors {
    const float* grad;         // [batch, length, channels]
    const float* inputs;       // as ChainSizes::row_ids says
    const float* values;       // [batch, length, channels]
    const float* checkpoints;  // [checkpoint_count, batch, length, channels]
};

struct ChainGradients {
    float *inputs, *values, *w1, *b1, *w2, *b2;  // shaped like what they are gradients of
};

// weights [batch, length, heads, links], values and out [batch, length, heads * channels], offsets [heads, links].
void link_mix(const MixSizes& sizes, const float* weights, const float* values, const int64_t* offsets, float* out);

void link_mix_backward(const MixSizes& sizes, const float* grad, const float* weights, const float* values,
                       const int64_t* offsets, float* dweights, float* dvalues);

// How many factor inputs paramix stores: those of factors c, 2c, ... below `factors`, with c = checkpoint_every.
int64_t checkpoint_count(const ChainSizes& sizes);

// values and out [batch, length, channels], checkpoints [checkpoint_count, batch, length, channels]. Rows of the
// checkpoints past a sequence's length are neither written nor read.
void paramix(const ChainSizes& sizes, const float* inputs, const float* values, const Parameters& parameters,
             float* out, float* checkpoints);

// Needs checkpoint_every >= 1, and the checkpoints as paramix wrote them with the same sizes.
void paramix_backward(const ChainSizes& sizes, const ChainTensors& tensors, const Parameters& parameters,
                      const ChainGradients& gradients);

// A chain's MLP alone: sizes.factors is 1 and sizes.links the width of `out` and `grad`. Unused: channels, ring,
// residual, checkpoint_every, the offsets and the gradient of values.
void mlp(const ChainSizes& sizes, const float* inputs, const Parameters& parameters, float* out);
void mlp_backward(const ChainSizes& sizes, const float* grad, const float* inputs, const Parameters& parameters,
                  const ChainGradients& gradients);

struct LookupSizes {
    int64_t tokens, rows, channels;
};

// dtable [rows, channels] = for every row the sum of grad [tokens, channels] over the tokens with its id.
void lookup_backward(const LookupSizes& sizes, const int64_t* ids, const float* grad, float* dtable);

// out = 0 for dropped elements, values / (1 - p) for the others. The mask is a function of (seed, element).
void dropout(int64_t count, const float* values, double p, uint64_t seed, float* out);

// The number of threads of the calls that follow in this thread. Only needed where the OpenMP runtime is not torch's
// own, whose number it would share.
void set_threads(int count);

// Every compiled instruction set, the preferred one last, and whether this machine can run it.
std::vector<std::pair<std::string, bool>> instruction_sets();
std::string instruction_set();
// "auto" chooses the best; false if the name is unknown or this machine cannot run it.
bool use_instruction_set(const std::string& name);

}  // namespace paramixer
