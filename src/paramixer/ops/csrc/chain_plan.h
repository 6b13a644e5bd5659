// What the forward and the backward pass of a chain share: how the work is divided, packed parameters, the threads'
// workspaces, and one factor's forward pass.
#pragma once

#include <vector>

#include "chunk_sums.h"
#include "engine.h"
#include "memory.h"
#include "tiles.h"
#include "waves.h"

namespace paramixer {

// What a forward pass of one factor reads and writes; pointers are to the wave's first row.
struct ForwardRows {
    const float* inputs;      // unused with a link table
    const float* link_table;  // the factor's link weights [rows, links], or null
    const float *first_values, *values;
    float* out;
};

// With heads, every head of every sequence is a sequence of its own, the heads of one after the other: a Tile's batch
// and a Wave's rows count these.
class ChainPlan : public WavePlan {
public:
    enum class Pass { forward, backward };

    ChainPlan(const ChainSizes& sizes, const Parameters& parameters, Pass pass, const Kernels& kernel = kernels());

    const ChainSizes& sizes;
    const Kernels& kernel;
    TileShape shape;
    std::vector<int64_t> chunk_heads;  // of every chunk, if there are heads

    // One factor for the calling thread; with heads, of the first one.
    FactorContext context(int64_t factor, int64_t head = 0);

    // The factor's context for the tile's head, if it is not so already.
    void select_head(int64_t factor, const Tile& tile, FactorContext& context);

    int64_t head_of(const Tile& tile) const { return sizes.heads ? tile.batch % sizes.heads : 0; }

    // One factor over a wave; called by every thread of a region, ends with a barrier.
    void forward(int64_t factor, const Wave& wave, const ForwardRows& rows);

    // The backward pass of one factor's MLP over a wave. `rows` are of all tokens. Called by every thread of a region,
    // ends with a barrier.
    void mlp_backward(int64_t factor, const Wave& wave, const MlpBackwardTile& rows, Write to_dinputs, ChunkSums& sums,
                      const ChainGradients& gradients);

private:
    void pack(int64_t index);

    const Parameters parameters_;
    const int64_t work_floats_;
    const Pass pass_;
    const int64_t factor_floats_;
    Buffer work_, packed_;
    std::vector<Run> runs_;
};

}  // namespace paramixer
