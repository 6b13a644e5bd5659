// The instruction set in use: the widest that this machine runs, or the one chosen by name.
#include <atomic>

#include "engine.h"
#include "kernels.h"

namespace paramixer {

#if defined(__x86_64__)
namespace baseline {
extern const Kernels table;
}
namespace avx2 {
extern const Kernels table;
}
namespace wide {
extern const Kernels table;
}
namespace avx512 {
extern const Kernels table;
}
#else
namespace baseline {
extern const Kernels table;
}
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

// "wide" is the code for AVX-512 (16 floats per vector) built for narrower machines, so that it can be tested there.
#if defined(__x86_64__)
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
const Set sets[] = {
    {"baseline", &baseline::table, always},
    {"wide", &wide::table, has_avx2},
    {"avx2", &avx2::table, has_avx2},
    {"avx512", &avx512::table, has_avx512},
};
#else
const Set sets[] = {{"wide", &wide::table, always}, {"baseline", &baseline::table, always}};
#endif

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
