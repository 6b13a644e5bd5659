// Compiled once per instruction set, with PARAMIXER_SET (a namespace) and PARAMIXER_WIDTH (floats a vector) defined.
#include "kernels.h"

#include "chain.h"
#include "dropout.h"
#include "mix.h"

namespace paramixer {
namespace PARAMIXER_SET {
namespace {

constexpr int Width = PARAMIXER_WIDTH;

void mix(const Tile& tile, const Links& links, const WeightView& weights, const float* values, int64_t channels,
         const float* residual, float* out, Run* runs) {
    mix_tile<Width>(tile, links, false, weights, values, channels, residual, out, runs);
}

void mix_adjoint(const Tile& tile, const Links& links, const WeightView& weights, const float* values, int64_t channels,
                 const float* residual, float* out, Run* runs) {
    mix_tile<Width>(tile, links, true, weights, values, channels, residual, out, runs);
}

}  // namespace

extern const Kernels table;
const Kernels table = {
    Width,       mix,
    mix_adjoint, dot_tile<Width>,
    forward_tile<Width>, backward_tile<Width>,
    look_up<Width>, store_transposed<Width>, add_rows_of<Width>,
    mlp_tile<Width>, mlp_backward_tile<Width>,
    dropout_elements<Width>,
};

}  // namespace PARAMIXER_SET
}  // namespace paramixer
