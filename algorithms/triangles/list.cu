// Triangles listed over the ranked view (algorithms/triangles/ranked.py).
//
// As on the CPU (algorithms/triangles/cpu.py), a triangle w < v < u is found at its middle vertex
// v, which looks at what stands before v in the row of every u that holds v. There are two shapes
// of v, each in a launch of its own:
//
// heavy   A block marks the row of v in a bitmap in shared memory, and its warps look up the
//         entries of the rows that hold v: one read of shared memory, with conflicts, instead of a
//         binary search. `before` says how many entries of the row precede a word of the bitmap, so
//         that a set bit gives its slot with one population count. Blocks take vertices as they come
//         free, in the order of their ranks: the most expensive first.
// light   Vertices of few entries: TILE lanes a row look up the shorter of the two lists in the
//         longer one, each lane from where its last search ended (GroupTC: Pan et al., "Towards
//         faster triangle counting on GPUs", 2024).
//
// Ranks make it work: the bits of hubs lie together, and a bitmap of RANKS bits, 16 KiB, covers all
// but a few hundredths of the lookups in an RMAT graph of some million vertices. The bitmap of a
// vertex of larger rank is *folded*: entries share bits, which is rare, and what hits is looked up
// in the row.
//
// What is done with a triangle is a Visit: whole warps call `look` and `leave`, single lanes `one`.
#include "lpma/cuda/lanes.cuh"
#include "lpma/cuda/search.cuh"
#include "lpma/cuda/take.cuh"

#ifndef MARKED_RANKS  // tests mark fewer
#define MARKED_RANKS (1 << 17)
#endif
constexpr u32 RANKS = MARKED_RANKS;  // of a bitmap
constexpr u32 WORDS = RANKS / 32;
constexpr i64 HEAVY_DEGREE = 64;     // a vertex of lower degree is light
constexpr i64 FOLDED_DEGREE = 128;   // from rank RANKS on
constexpr u32 COUNTED = 4096;     // entries of a row that have counters in shared memory
constexpr u32 TILE = 8;
constexpr u32 HEAVY_THREADS = 512;
enum { HEAVY, NEXT };  // words of `work`: ranks below HEAVY are heavy, of which NEXT is the next

struct Rows {
  const i64* indptr;
  const u32* indices;
  const i64* in_indptr;
  const i32* in_slot;
  const i32* in_length;
  i64 m;
};

// Set `work`. Degrees fall with the rank.
extern "C" __global__ void split(const i64* indptr, const i64* in_indptr, i64 n, i64* work) {
  if (thread_number()) return;
  work[HEAVY] = first_false(i64(0), n, [&](i64 r) {
    i64 degree = indptr[r + 1] - indptr[r] + in_indptr[r + 1] - in_indptr[r];
    return degree >= (r < RANKS ? HEAVY_DEGREE : FOLDED_DEGREE);
  });
  work[NEXT] = 0;
}

// What a block has marked of v's row, which is of this length.
struct Marked {
  i64 row;
  u32 length;
  bool folded;
  u32* bits;
  unsigned short* before;
};

// Look up the `entries` before the slot uv in v's row.
template <class Visit>
__device__ __forceinline__ void look_up(const Rows& g, const Marked& v, i64 uv, i64 entries,
                                        Visit& visit) {
  for (i64 start = uv - entries; start < uv; start += 32) {
    i64 uw = start + lane_id();
    bool hit = false;
    u32 at = 0;
    if (uw < uv) {
      u32 w = g.indices[uw], of = w % RANKS, word = v.bits[of >> 5], bit = w & 31;
      hit = word >> bit & 1;
      if (hit && !v.folded) at = v.before[of >> 5] + __popc(word & ((1u << bit) - 1));
      if (hit && v.folded) {
        at = lower_bound(g.indices + v.row, 0u, v.length, w);
        hit = at < v.length && g.indices[v.row + at] == w;
      }
    }
    visit.look(hit, uv, uw, v.row, at);
  }
  visit.leave(uv);
}

template <class Visit>
__device__ void heavy(const Rows& g, u64* work, Visit& visit) {
  __shared__ u32 bits[WORDS];
  __shared__ unsigned short before[WORDS];
  for (u32 i = threadIdx.x; i < WORDS; i += blockDim.x) bits[i] = 0;
  i64 heavies = i64(work[HEAVY]);
  u32 warps = blockDim.x >> 5;
  for (i64 v; (v = take_for_block(&work[NEXT])) < heavies;) {
    i64 row = g.indptr[v], length = g.indptr[v + 1] - row;
    i64 i = g.in_indptr[v] + warp_id(), last = g.in_indptr[v + 1];
    if (length == 0) continue;
    Marked marked = {row, u32(length), v >= RANKS, bits, before};
    for (i64 k = threadIdx.x; k < length; k += blockDim.x) {
      u32 w = g.indices[row + k], of = w % RANKS;
      atomicOr(&bits[of >> 5], 1u << (of & 31));
      if (!marked.folded && (k == 0 || g.indices[row + k - 1] >> 5 != w >> 5)) before[w >> 5] = k;
    }
    visit.enter(length);
    __syncthreads();
    // The place of the next row is read while this one is looked through.
    i64 uv = i < last ? g.in_slot[i] : 0, ahead = i < last ? g.in_length[i] : 0;
    while (i < last) {
      i64 now = uv, entries = ahead;
      i += warps;
      if (i < last) {
        uv = g.in_slot[i];
        ahead = g.in_length[i];
      }
      look_up(g, marked, now, entries, visit);
    }
    __syncthreads();
    for (i64 k = threadIdx.x; k < length; k += blockDim.x)
      bits[g.indices[row + k] % RANKS >> 5] = 0;
    visit.finish(row, length);
  }
}

template <class Visit>
__device__ void light(const Rows& g, const u64* work, Visit& visit) {
  i64 tiles = thread_count() / TILE;
  for (i64 i = g.in_indptr[work[HEAVY]] + thread_number() / TILE; i < g.m; i += tiles) {
    i64 uv = g.in_slot[i], entries = g.in_length[i];
    if (entries == 0) continue;
    u32 v = g.indices[uv];
    i64 row = g.indptr[v], length = g.indptr[v + 1] - row;
    bool of_u = entries <= length;  // the shorter list is u's, up to v
    i64 a = of_u ? uv - entries : row, end_a = a + (of_u ? entries : length);
    i64 b = of_u ? row : uv - entries, end_b = b + (of_u ? length : entries);
    for_common(g.indices, a + threadIdx.x % TILE, end_a, b, end_b, TILE,
               [&](i64 i, i64 j) { visit.one(uv, of_u ? i : j, of_u ? j : i); });
  }
}

// Count all triangles.
struct Count {
  u64 found;

  __device__ void enter(i64) {}
  __device__ void look(bool hit, i64, i64, i64, u32) { found += hit; }
  __device__ void leave(i64) {}
  __device__ void finish(i64, i64) {}
  __device__ void one(i64, i64, i64) { ++found; }

  // For whole warps.
  __device__ void add_to(u64* total) {
    found = warp_sum(found);
    if (lane_id() == 0 && found) atomicAdd(total, found);
  }
};

// Count the triangles of each edge. Those of vw, whose row the block has marked, are counted in
// shared memory.
struct Support {
  i32* support;
  u32* counts;  // u32[COUNTED], shared
  u32 found;    // of uv, by this lane

  __device__ void enter(i64 length) {
    for (i64 k = threadIdx.x; k < length && k < COUNTED; k += blockDim.x) counts[k] = 0;
  }
  __device__ void look(bool hit, i64, i64 uw, i64 row, u32 at) {
    if (!hit) return;
    ++found;
    atomicAdd(&support[uw], 1);
    if (at < COUNTED)
      atomicAdd(&counts[at], 1u);
    else
      atomicAdd(&support[row + at], 1);
  }
  __device__ void leave(i64 uv) {
    u32 all = lanes_sum(found);
    if (lane_id() == 0 && all) atomicAdd(&support[uv], i32(all));
    found = 0;
  }
  __device__ void finish(i64 row, i64 length) {
    for (i64 k = threadIdx.x; k < length && k < COUNTED; k += blockDim.x)
      if (counts[k]) atomicAdd(&support[row + k], i32(counts[k]));
  }
  __device__ void one(i64 uv, i64 uw, i64 vw) {
    atomicAdd(&support[uv], 1);
    atomicAdd(&support[uw], 1);
    atomicAdd(&support[vw], 1);
  }
};

// List each edge's triangles as their two other slots. places[slot]: where the next pair goes.
struct Pairs {
  u64* places;
  int2* pairs;

  __device__ void put(i64 uv, i64 uw, i64 vw, u64 at_uv) {
    u64 at_uw = atomicAdd(&places[uw], 1ull), at_vw = atomicAdd(&places[vw], 1ull);
    pairs[at_uv] = make_int2(i32(uw), i32(vw));
    pairs[at_uw] = make_int2(i32(uv), i32(vw));
    pairs[at_vw] = make_int2(i32(uv), i32(uw));
  }
  __device__ void enter(i64) {}
  __device__ void look(bool hit, i64 uv, i64 uw, i64 row, u32 at) {
    u32 hits = __ballot_sync(ALL_LANES, hit);
    if (hits == 0) return;
    u32 leader = __ffs(hits) - 1;
    u64 first = 0;
    if (lane_id() == leader) first = atomicAdd(&places[uv], u64(__popc(hits)));
    first = __shfl_sync(ALL_LANES, first, leader);
    if (hit) put(uv, uw, row + at, first + lanes_before(hits));
  }
  __device__ void leave(i64) {}
  __device__ void finish(i64, i64) {}
  __device__ void one(i64 uv, i64 uw, i64 vw) { put(uv, uw, vw, atomicAdd(&places[uv], 1ull)); }
};

#define ROWS                                                                              \
  const i64 *indptr, const u32 *indices, const i64 *in_indptr, const i32 *in_slot,        \
      const i32 *in_length, i64 m, u64 *work
#define GIVEN \
  { indptr, indices, in_indptr, in_slot, in_length, m }

extern "C" __global__ void __launch_bounds__(HEAVY_THREADS) count_heavy(ROWS, u64* total) {
  Count visit = {0};
  heavy(Rows GIVEN, work, visit);
  visit.add_to(total);
}

extern "C" __global__ void count_light(ROWS, u64* total) {
  Count visit = {0};
  light(Rows GIVEN, work, visit);
  __syncwarp();
  visit.add_to(total);
}

extern "C" __global__ void __launch_bounds__(HEAVY_THREADS) support_heavy(ROWS, i32* support) {
  __shared__ u32 counts[COUNTED];
  Support visit = {support, counts, 0};
  heavy(Rows GIVEN, work, visit);
}

extern "C" __global__ void support_light(ROWS, i32* support) {
  Support visit = {support, nullptr, 0};
  light(Rows GIVEN, work, visit);
}

extern "C" __global__ void __launch_bounds__(HEAVY_THREADS)
    pairs_heavy(ROWS, u64* places, int2* pairs) {
  Pairs visit = {places, pairs};
  heavy(Rows GIVEN, work, visit);
}

extern "C" __global__ void pairs_light(ROWS, u64* places, int2* pairs) {
  Pairs visit = {places, pairs};
  light(Rows GIVEN, work, visit);
}
