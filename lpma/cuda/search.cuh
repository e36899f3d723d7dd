// Binary search: one loop, for sorted arrays and for any condition that turns from true to false; and
// what two sorted rows have in common.
//
// Places are i64 where arrays may be longer than 2^32 entries, and u32 where they cannot be, which
// saves registers.
#pragma once
#include "lpma/cuda/types.cuh"

// The first of places low … high - 1 for which `comes_before(place)` is false; `high` where it is
// true for all. REQUIRES: it is false for all places after the first for which it is.
template <typename Place, class Condition>
__device__ __forceinline__ Place first_false(Place low, Place high, Condition comes_before) {
  while (low < high) {
    Place middle = (low + high) >> 1;
    if (comes_before(middle))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// The first of places low … high - 1 whose value is not below x; `high` where all are. The values
// there rise.
template <typename T>
__device__ __forceinline__ i64 lower_bound(const T* values, i64 low, i64 high, T x) {
  return first_false(low, high, [&](i64 place) { return values[place] < x; });
}

template <typename T>
__device__ __forceinline__ u32 lower_bound(const T* values, u32 low, u32 high, T x) {
  return first_false(low, high, [&](u32 place) { return values[place] < x; });
}

// Call visit(i, j) for entries i of the sorted row a … end_a - 1, every step-th, and j of the sorted
// row b … end_b - 1 that are equal. A search begins where the one before ended (GroupTC: Pan et al.,
// "Towards faster triangle counting on GPUs", 2024), so the shorter row should be the first.
template <class Visit>
__device__ __forceinline__ void for_common(const u32* indices, i64 a, i64 end_a, i64 b, i64 end_b,
                                           u32 step, Visit visit) {
  for (; a < end_a && b < end_b; a += step) {
    u32 wanted = indices[a];
    b = lower_bound(indices, b, end_b, wanted);
    if (b < end_b && indices[b] == wanted) visit(a, b);
  }
}
