// Compiled once per instruction set, with PARAMIXER_SET (a namespace) and PARAMIXER_WIDTH (floats per vector) defined.
#include "kernels.h"

#include "dropout.h"
#include "factor.h"
#include "mix.h"

namespace paramixer {
namespace PARAMIXER_SET {
namespace {

constexpr int Width = PARAMIXER_WIDTH;

void mix(const Gather& gather, const WeightView& weights, const float* residual, float* out) {
    mix_tile<Width, Direction::forward>(gather, weights, residual, out);
}

void mix_adjoint(const Gather& gather, const WeightView& weights, const float* residual, float* out) {
    mix_tile<Width, Direction::adjoint>(gather, weights, residual, out);
}

}  // namespace

extern const Kernels table;
const Kernels table = {
    /*width=*/Width,
    /*mix=*/mix,
    /*mix_adjoint=*/mix_adjoint,
    /*mix_dweights=*/dot_tile<Width>,
    /*forward=*/forward_tile<Width>,
    /*backward=*/backward_tile<Width>,
    /*gather_weights=*/gather_weights<Width>,
    /*transpose_weights=*/transpose_weights<Width>,
    /*sum_rows=*/sum_rows<Width>,
    /*mlp=*/mlp_tile<Width>,
    /*mlp_backward=*/mlp_backward_tile<Width>,
    /*dropout=*/dropout_elements<Width>,
};

}  // namespace PARAMIXER_SET
}  // namespace paramixer
