#include "work_queue.h"

#include "engine.h"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace paramixer {

#if defined(_OPENMP)
int max_threads() { return omp_get_max_threads(); }
int thread_count() { return omp_get_num_threads(); }
int thread_number() { return omp_get_thread_num(); }
void set_threads(int count) { omp_set_num_threads(count); }
#else
int max_threads() { return 1; }
int thread_count() { return 1; }
int thread_number() { return 0; }
void set_threads(int) {}
#endif

}  // namespace paramixer
