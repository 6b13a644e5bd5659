// What the chain's forward and backward pass share: packed parameters, the threads' workspaces, one factor's pass.
#pragma once

#include <vector>

#include "engine.h"
#include "memory.h"
#include "tiles.h"

namespace paramixer {

class Factors {
public:
    Factors(const ChainSizes& sizes, const Parameters& parameters, bool backward);

    const ChainSizes& sizes;
    const Kernels& kernel;
    TileShape shape;
    std::vector<Tile> tiles;

    PackedFactor packed(int64_t factor);
    Links links(int64_t factor) const;
    Workspace workspace();  // the calling thread's

    // One factor over all tiles, shared between the threads of the enclosing parallel region; ends with a barrier.
    void forward(int64_t factor, const float* inputs, const float* first_values, const float* values, float* out);

private:
    void pack(int64_t factor);

    const Parameters parameters_;
    const int64_t work_floats_;
    const bool backward_;
    const int64_t factor_floats_;
    Buffer work_, packed_;
    std::vector<Run> runs_;
};

}  // namespace paramixer
