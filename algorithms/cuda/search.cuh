// Searching a sorted row.
#pragma once
#include "types.cuh"

// The first of places low … high - 1 whose entry is not below w; `high` where all are.
__device__ __forceinline__ i64 lower_bound(const u32* indices, i64 low, i64 high, u32 w) {
  while (low < high) {
    i64 middle = (low + high) >> 1;
    if (indices[middle] < w)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}
