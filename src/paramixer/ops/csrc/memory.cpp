#include "memory.h"

#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include <unistd.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace paramixer {
namespace {

constexpr size_t line = 64, huge_page = size_t{1} << 21;

// An eighth of the machine's memory; nothing where a sanitizer is to see every block come and go.
size_t most_kept() {
#if defined(__SANITIZE_ADDRESS__)
    return 0;
#else
    static const size_t limit = [] {
        const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
        return pages > 0 && bytes > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(bytes) / 8 : size_t{256} << 20;
    }();
    return limit;
#endif
}

float* from_system(size_t bytes) {
    const bool large = bytes % huge_page == 0;
    void* const data = std::aligned_alloc(large ? huge_page : line, bytes);
    if (data == nullptr) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (large) madvise(data, bytes, MADV_HUGEPAGE);
#endif
    return static_cast<float*>(data);
}

// Blocks that were freed, the latest last. Who finds it busy goes to the system instead of waiting, so that a process
// forked at a bad moment cannot wait forever.
class Shelf {
public:
    float* take(size_t bytes) {
        const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
        if (!lock) return nullptr;
        for (size_t i = blocks_.size(); i-- > 0;) {
            if (blocks_[i].bytes != bytes) continue;
            float* const data = blocks_[i].data;
            blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(i));
            kept_ -= bytes;
            return data;
        }
        return nullptr;
    }

    // False if the block was not taken; the oldest blocks make room.
    bool put(float* data, size_t bytes) {
        const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
        if (!lock || bytes > most_kept() / 2) return false;
        while (kept_ + bytes > most_kept()) {
            std::free(blocks_.front().data);
            kept_ -= blocks_.front().bytes;
            blocks_.erase(blocks_.begin());
        }
#if defined(__linux__) && defined(MADV_FREE)
        // The system may take the pages if it runs short; until then they are here, mapped and ready.
        if (bytes % huge_page == 0) madvise(data, bytes, MADV_FREE);
#endif
        blocks_.push_back({data, bytes});
        kept_ += bytes;
        return true;
    }

private:
    struct Block {
        float* data;
        size_t bytes;
    };
    std::mutex mutex_;
    std::vector<Block> blocks_;
    size_t kept_ = 0;
};

// Never destroyed: a tensor may outlive everything else.
Shelf& shelf() {
    static Shelf* const only = new Shelf;
    return *only;
}

}  // namespace

bool keeps_memory() { return most_kept() > 0; }

Buffer::Buffer(int64_t floats) : bytes_(0), data_(nullptr) {
    if (floats == 0) return;
    const size_t wanted = static_cast<size_t>(floats) * sizeof(float);
    const size_t unit = wanted >= huge_page ? huge_page : line;
    bytes_ = (wanted + unit - 1) / unit * unit;
    data_ = shelf().take(bytes_);
    if (data_ == nullptr) data_ = from_system(bytes_);
}

Buffer::Buffer(Buffer&& other) noexcept : bytes_(other.bytes_), data_(other.data_) { other.data_ = nullptr; }

Buffer::~Buffer() {
    if (data_ != nullptr && !shelf().put(data_, bytes_)) std::free(data_);
}

}  // namespace paramixer
