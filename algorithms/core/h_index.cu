// Core numbers by h-indices (MPM).
//
// Source: Montresor, De Pellegrini and Miorandi, "Distributed k-core decomposition", PODC 2011.
//
// Idea: an estimate, at first the degree, becomes the h-index of the neighbours' estimates: the
// largest h such that h of them are h or more. It is found by binary search, one count of the row a
// step. Estimates only fall, and never below the core number, so a newer value that is read in
// place of the round's does no harm. A vertex is looked at again when a neighbour that it counted
// falls below its own estimate.
//
// A warp refines a short row, a block a long one.
#include "lpma/cuda/scan.cuh"
#include "lpma/cuda/search.cuh"

constexpr u32 LONG = 1024;  // entries
constexpr u32 BLOCK = 1024;  // threads that refine a long row

struct Warp {
  __device__ static u32 rank() { return lane_id(); }
  __device__ static u32 size() { return 32; }
  __device__ static u32 sum(u32 x) { return warp_sum(x); }
};

struct Block {
  __device__ static u32 rank() { return threadIdx.x; }
  __device__ static u32 size() { return BLOCK; }
  __device__ static u32 sum(u32 x) { return block_sum<BLOCK>(x); }
};

// The number of estimates in the row that are h or more.
template <typename Team>
__device__ __forceinline__ i32 at_least(const u32* row, u32 length, const i32* estimate, i32 h) {
  u32 count = 0;
  for (u32 i = Team::rank(); i < length; i += Team::size())
    count += __ldcg(estimate + row[i]) >= h;
  return i32(Team::sum(count));
}

// Refine the estimate of v, whose row is given; all threads of a team. At least c of the
// neighbours' estimates are c or more at any time, c being the core number, so the search cannot
// end below c, whatever falls meanwhile.
template <typename Team>
__device__ __forceinline__ void refine(i64 v, const i64* indptr, const u32* indices, i32* estimate,
                                       u8* later) {
  const u32* row = indices + indptr[v];
  u32 length = u32(indptr[v + 1] - indptr[v]);
  i32 bound = __ldcg(estimate + v);
  auto holds = [&](i32 h) { return at_least<Team>(row, length, estimate, h) >= h; };
  if (length == 0 || holds(bound)) return;
  i32 refined = first_false(1, bound, holds) - 1;
  if (Team::rank() == 0) estimate[v] = refined;
  for (u32 i = Team::rank(); i < length; i += Team::size())
    if (__ldcg(estimate + row[i]) > refined) later[row[i]] = 1;
}

// A warp for each of `rows` that is marked `now`, and that no block refines. Marks are taken off, so
// that the array serves as `later` in the next round.
extern "C" __global__ void refine_rows(const i64* indptr, const u32* indices, const i64* rows,
                                       i64 count, i32* estimate, u8* now, u8* later) {
  i64 i = warp_number();
  if (i >= count) return;
  i64 v = rows[i];
  if (!now[v] || indptr[v + 1] - indptr[v] > LONG) return;
  __syncwarp();
  if (lane_id() == 0) now[v] = 0;
  refine<Warp>(v, indptr, indices, estimate, later);
}

// A block a vertex of `hubs`, those with more than LONG entries.
extern "C" __global__ void __launch_bounds__(BLOCK)
    refine_hubs(const i64* indptr, const u32* indices, const i64* hubs, i32* estimate, u8* now,
                u8* later) {
  i64 v = hubs[blockIdx.x];
  bool marked = now[v];
  __syncthreads();
  if (!marked) return;
  if (threadIdx.x == 0) now[v] = 0;
  refine<Block>(v, indptr, indices, estimate, later);
}
