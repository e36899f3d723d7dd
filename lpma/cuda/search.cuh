// Searching rising values, such as a sorted row.
#pragma once
#include "lpma/cuda/types.cuh"

// The first of places low … high - 1 whose value is not below x; `high` where all are.
template <typename T>
__device__ __forceinline__ i64 lower_bound(const T* values, i64 low, i64 high, T x) {
  while (low < high) {
    i64 middle = (low + high) >> 1;
    if (values[middle] < x)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}
