// The part of the Python module that serves tables of n-grams, apart from bind.cpp.
#pragma once

#include <nanobind/nanobind.h>

namespace paramixer {

void bind_tables(nanobind::module_& module);

}  // namespace paramixer
