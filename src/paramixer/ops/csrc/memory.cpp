#include "memory.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PARAMIXER_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define PARAMIXER_SANITIZED
#endif

namespace paramixer {
namespace {

constexpr size_t line = 64, huge_page = size_t{1} << 21;

size_t default_limit() {
#if defined(PARAMIXER_SANITIZED)
    return 0;
#else
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(bytes) / 8 : size_t{256} << 20;
#endif
}

float* allocate(size_t bytes) {
    const bool large = bytes % huge_page == 0;
    void* const data = std::aligned_alloc(large ? huge_page : line, bytes);
    if (data == nullptr) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (large) madvise(data, bytes, MADV_HUGEPAGE);
#endif
    return static_cast<float*>(data);
}

// Freed blocks, the latest last. A thread that finds the lock taken uses the system's allocator instead of waiting, so
// that a process forked while the lock was held cannot wait forever.
class CachingAllocator {
public:
    // A cached block of exactly this size, or null.
    float* take(size_t bytes) {
        const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
        if (!lock) return nullptr;
        for (size_t i = blocks_.size(); i-- > 0;) {
            if (blocks_[i].bytes != bytes) continue;
            float* const data = blocks_[i].data;
            blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(i));
            cached_ -= bytes;
            return data;
        }
        return nullptr;
    }

    // Caches a block; the oldest blocks make room. False if it was not taken.
    bool put(float* data, size_t bytes) noexcept {
        const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
        const size_t limit = limit_;
        if (!lock || bytes > limit / 2) return false;
        evict(limit - bytes);
        try {
            blocks_.push_back({data, bytes});
        } catch (const std::bad_alloc&) {
            return false;
        }
#if defined(__linux__) && defined(MADV_FREE)
        // The system may take the pages if it runs short; until then they stay mapped.
        if (bytes % huge_page == 0) madvise(data, bytes, MADV_FREE);
#endif
        cached_ += bytes;
        return true;
    }

    // Frees the oldest blocks until at most `limit` bytes are cached, and returns how many were freed. Waits a moment
    // for the lock, not forever (see above).
    size_t shrink(size_t limit) {
        for (int attempt = 0; attempt < 1000; ++attempt) {
            const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
            if (lock) return evict(limit);
            std::this_thread::yield();
        }
        return 0;
    }

    std::atomic<size_t>& limit() { return limit_; }
    size_t cached() const { return cached_; }

private:
    struct Block {
        float* data;
        size_t bytes;
    };

    size_t evict(size_t limit) {
        size_t freed = 0, count = 0;
        for (; cached_ > limit; ++count) {
            std::free(blocks_[count].data);
            freed += blocks_[count].bytes;
            cached_ -= blocks_[count].bytes;
        }
        blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(count));
        return freed;
    }

    std::mutex mutex_;
    std::vector<Block> blocks_;
    std::atomic<size_t> cached_{0}, limit_{default_limit()};
};

// Never destroyed: a tensor may outlive everything else.
CachingAllocator& allocator() {
    static CachingAllocator* const instance = new CachingAllocator;
    return *instance;
}

}  // namespace

size_t cache_limit() { return allocator().limit(); }

void set_cache_limit(size_t bytes) {
    allocator().limit() = bytes;
    allocator().shrink(bytes);
}

size_t cached_bytes() { return allocator().cached(); }

size_t release_memory() {
    const size_t freed = allocator().shrink(0);
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
    return freed;
}

Buffer::Buffer(int64_t floats) : bytes_(0), data_(nullptr) {
    if (floats == 0) return;
    const size_t needed = static_cast<size_t>(floats) * sizeof(float);
    // Sizes in steps of at most an eighth, so that batches of other lengths find blocks that fit.
    size_t step = line;
    while (step * 16 <= needed) step *= 2;
    const size_t unit = needed >= huge_page ? std::max(huge_page, step) : step;
    bytes_ = (needed + unit - 1) / unit * unit;
    data_ = allocator().take(bytes_);
    if (data_ == nullptr) data_ = allocate(bytes_);
}

Buffer::Buffer(Buffer&& other) noexcept : bytes_(other.bytes_), data_(other.data_) { other.data_ = nullptr; }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
    return *this;
}

Buffer::~Buffer() {
    if (data_ != nullptr && !allocator().put(data_, bytes_)) std::free(data_);
}

}  // namespace paramixer
