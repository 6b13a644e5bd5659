// Compiled by CMake before anything else: whether this compiler knows what the kernels use.
#define PARAMIXER_SET sample

#include "dropout.h"
#include "gelu.h"
#include "mix.h"
#include "work_queue.h"

int main() {
    using namespace paramixer;
    float numbers[64] = {};
    sample::Floats<8> vectors[8] = {};
    sample::transpose<8>(vectors);
    sample::store<8>(numbers, sample::sum_each<8>(vectors));
    sample::gelu_all<8>(numbers, 64);
    sample::dropout_elements<8>({{1, 2, 3}, 4, 2.0f}, 0, 64, numbers, numbers);
    int64_t product = 0;
    const bool overflow = __builtin_mul_overflow(product, int64_t{3}, &product);
    std::atomic<int64_t> count{0};
#pragma omp parallel
    {
        count.fetch_add(1, std::memory_order_relaxed);
#pragma omp barrier
    }
    return overflow || count.load() < 1 ? 1 : 0;
}
