#include "memory.h"

#include <cstdlib>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace paramixer {
namespace {

constexpr size_t line = 64, huge_page = size_t{1} << 21;

}  // namespace

Buffer::Buffer(int64_t floats) : data_(nullptr) {
    if (floats == 0) return;
    const size_t wanted = static_cast<size_t>(floats) * sizeof(float);
    const size_t alignment = wanted >= 2 * huge_page ? huge_page : line;
    const size_t bytes = (wanted + alignment - 1) / alignment * alignment;
    data_ = static_cast<float*>(std::aligned_alloc(alignment, bytes));
    if (data_ == nullptr) throw std::bad_alloc();
    prefer_huge_pages(data_, bytes);
}

Buffer::~Buffer() { std::free(data_); }

void prefer_huge_pages(void* data, size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + huge_page - 1) / huge_page * huge_page;
    const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / huge_page * huge_page;
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
    (void)data, (void)bytes;
#endif
}

}  // namespace paramixer
