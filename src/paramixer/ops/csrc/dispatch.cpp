// The instruction set in use: the widest that this machine runs, or the one chosen by name.
#include <atomic>

#include "engine.h"
#include "kernels.h"

namespace paramixer {

namespace baseline {
extern const Kernels table;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels table;
}
namespace avx512 {
extern const Kernels table;
}
#endif
#if defined(PARAMIXER_TEST_KERNELS)
namespace wide {
extern const Kernels table;
}
#endif

namespace {

struct Set {
    const char* name;
    const Kernels* table;
    bool (*runs_here)();
};

bool always() { return true; }

#if defined(__x86_64__)
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#endif

// The last one that runs here is the default.
const Set sets[] = {
// The code for AVX-512 (16 floats per vector) built for narrower machines, so that it can be tested there.
#if defined(PARAMIXER_TEST_KERNELS) && defined(__x86_64__)
    {"wide", &wide::table, has_avx2},
#elif defined(PARAMIXER_TEST_KERNELS)
    {"wide", &wide::table, always},
#endif
    {"baseline", &baseline::table, always},
#if defined(__x86_64__)
    {"avx2", &avx2::table, has_avx2},
    {"avx512", &avx512::table, has_avx512},
#endif
};

const Set* best() {
    const Set* choice = nullptr;
    for (const Set& set : sets)
        if (set.runs_here()) choice = &set;
    return choice;
}

std::atomic<const Set*>& chosen() {
    static std::atomic<const Set*> set{best()};
    return set;
}

}  // namespace

const Kernels& kernels() { return *chosen().load()->table; }

std::vector<std::pair<std::string, bool>> instruction_sets() {
    std::vector<std::pair<std::string, bool>> names;
    for (const Set& set : sets) names.emplace_back(set.name, set.runs_here());
    return names;
}

std::string instruction_set() { return chosen().load()->name; }

bool use_instruction_set(const std::string& name) {
    if (name == "auto") {
        chosen() = best();
        return true;
    }
    for (const Set& set : sets) {
        if (name == set.name && set.runs_here()) {
            chosen() = &set;
            return true;
        }
    }
    return false;
}

}  // namespace paramixer
