// How the weights of edges decay: the steps of lpma/time_view.py, which says why they are these.
//
// Trick: what rounds is an intrinsic, because the compiler fuses no multiplication with an addition
// that is one.
#pragma once
#include "lpma/cuda/types.cuh"

constexpr i64 SHIFTER_BITS = 0x4338000000000000;  // of 1.5 · 2^52
constexpr i64 ZERO_AT = 1023;                     // half-lives
constexpr int MANTISSA = 52;                      // bits
struct Decay {
  i64 now, half_life;
  u64 most;        // an age beyond this one counts as this one
  double inverse;  // 1 / half_life
};

// What is left of a weight of 1.
__device__ __forceinline__ double factor_of(const Decay& d, i64 time) {
  u64 age = time < d.now ? u64(d.now) - u64(time) : 0;
  age = age < d.most ? age : d.most;
  double shifter = __longlong_as_double(SHIFTER_BITS);
  double shifted = __dadd_rn(__dmul_rn(__ull2double_rn(age), d.inverse), shifter);
  i64 k = __double_as_longlong(shifted) - SHIFTER_BITS;
  i64 rest = i64(age - u64(k) * u64(d.half_life));
  // (-ln 2)^i / i!, rounded, the highest first: SERIES of time_view.py.
  constexpr double SERIES[] = {
      -0x1.816193166d0f9p-40, 0x1.c3bd650fc2986p-36,  -0x1.e8cac7351bb25p-32,
      0x1.e4cf5158b8ecap-28,  -0x1.b5253d395e7c4p-24, 0x1.62c0223a5c824p-20,
      -0x1.ffcbfc588b0c7p-17, 0x1.430912f86c787p-13,  -0x1.5d87fe78a6731p-10,
      0x1.3b2ab6fba4e77p-7,   -0x1.c6b08d704a0c0p-5,  0x1.ebfbdff82c58fp-3,
      -0x1.62e42fefa39efp-1,  0x1.0p+0};
  double left = __dmul_rn(__ll2double_rn(rest), d.inverse), power = SERIES[0];
#pragma unroll
  for (int i = 1; i < 14; ++i) power = __dadd_rn(__dmul_rn(power, left), SERIES[i]);
  return __dmul_rn(power, __longlong_as_double((ZERO_AT - k) << MANTISSA));
}

constexpr double LEAST_SINGLE = 0x1p-126;

__device__ __forceinline__ float decayed(const Decay& d, float weight, i64 time) {
  double left = __dmul_rn(double(weight), factor_of(d, time));
  return __double2float_rn(left >= LEAST_SINGLE ? left : 0);
}

__device__ __forceinline__ double decayed(const Decay& d, double weight, i64 time) {
  return __dmul_rn(weight, factor_of(d, time));
}
