// The triangles of an edge by intersecting the rows of its ends, for the peeling of peel.cuh.
//
// Idea: candidates are the entries of the shorter row, and few of them close a triangle. So each
// row also has a Bloom filter, of BITS bits for an entry: an entry's hash chooses a word and
// three bits of it (Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters",
// WEA 2007). A candidate for which they are not all set in the longer row's filter is not there;
// that is one read, of a word that stays in the caches while a hub's edges are peeled. Candidates
// that are left wait in shared memory until a warp has one for every lane; only they are looked
// up in the longer row. The last of an item, being few, are looked up by several lanes each, which
// try as many places at once: such a search is a chain of reads, and most items have few.
//
// Edges that are GONE are dropped from the rows and the filters made anew whenever a quarter of the
// edges held is. A warp does a row, and a block one of LONG entries or more.
//
// Requires: rows that were not changed but by `shrink`; blocks of BLOCK threads.
#pragma once
#include "algorithms/truss/edge_rows.cuh"
#include "algorithms/truss/peel.cuh"
#include "lpma/cuda/scan.cuh"

constexpr u32 BLOCK = 256;       // as in lpma/cuda/launch.py
constexpr i64 BITS = 16;         // of the filters for an entry; algorithms/truss/cuda.py
constexpr i64 LONG = 4096;       // algorithms/truss/cuda.py
constexpr u32 STEPS = 4;         // candidates that a lane looks at together
constexpr u32 OF_THREAD = 4;     // entries of a long row that a thread looks at together

// A row's filter: the whole words among the bits of its entries. There may be none.
struct Filter {
  u32* words;
  u32 count;

  struct Place {
    u32 word, bits;
  };
  __device__ Place place_of(u32 w) const {
    u32 hash = w * 0x9E3779B1u, other = hash * 0x85EBCA6Bu;
    return {u32(u64(hash) * count >> 32),
            1u << (other >> 27) | 1u << (other >> 22 & 31) | 1u << (other >> 17 & 31)};
  }
  // False only if w is not in the row.
  __device__ bool may_hold(u32 w) const {
    if (count == 0) return true;
    Place place = place_of(w);
    return (words[place.word] & place.bits) == place.bits;
  }
};

// Where `values` holds x among its places 0 … length - 1, by groups of `lanes` neighbouring lanes, of
// which each has its own x and length; `length` if nowhere. For one whole warp. REQUIRES: the values
// rise; lanes is 4, 8, 16 or 32.
__device__ __forceinline__ u32 find_together(const u32* values, u32 length, u32 x, u32 lanes) {
  u32 own = lane_id() & (lanes - 1), start = lane_id() - own;
  u32 group = (lanes == 32 ? ALL_LANES : (1u << lanes) - 1) << start;
  u32 low = 0, high = length;
  while (__any_sync(ALL_LANES, high - low > lanes)) {
    u32 stride = (high - low + lanes - 1) / lanes, i = low + own * stride;
    u32 upto = __popc(__ballot_sync(ALL_LANES, i < high && values[i] <= x) & group);
    if (upto == 0) {
      high = low;
    } else {
      low += (upto - 1) * stride;
      high = min(high, low + stride);
    }
  }
  u32 found = __ballot_sync(ALL_LANES, low + own < high && values[low + own] == x) & group;
  return found ? low + __ffs(found) - 1 - start : length;
}

struct Intersected {
  static constexpr u32 PIECE = 1024, MOST_SHIFT = 3;

  EdgeRows g;
  const u8* fate;
  u32* filters;      // BITS for each entry of the rows
  const u32* longs;  // the rows that had LONG entries or more at first
  i64 long_count;
  i64 held;          // edges in the rows, or more

  __device__ Filter filter_of(i64 first, i64 last) const {
    i64 from = (first * BITS + 31) / 32, to = last * BITS / 32;
    return {filters + from, u32(max(to - from, i64(0)))};
  }

  // Fill the filter of row first … last - 1 by threads `rank`, `rank` + `count`, … of a group
  // that `sync` has wait for each other.
  template <class Sync>
  __device__ void fill(i64 first, i64 last, u32 rank, u32 count, Sync sync) const {
    Filter filter = filter_of(first, last);
    for (u32 i = rank; i < filter.count; i += count) filter.words[i] = 0;
    sync();
    if (filter.count == 0) return;
    for (i64 i = first + rank; i < last; i += count) {
      Filter::Place place = filter.place_of(g.indices[i]);
      atomicOr(&filter.words[place.word], place.bits);
    }
  }

  // In place: what a lane writes lies before or among the entries that its warp has read.
  __device__ void shrink_by_warp(i64 u) const {
    i64 first = g.first[u], place = first, last = g.last[u];
    for (i64 start = first; start < last; start += 32) {
      i64 i = start + lane_id();
      u32 v = i < last ? g.indices[i] : 0;
      i32 e = i < last ? g.edge[i] : 0;
      bool keep = i < last && fate[e] != GONE;
      u32 kept = __ballot_sync(ALL_LANES, keep);
      __syncwarp();
      if (keep) {
        i64 to = place + lanes_before(kept);
        g.indices[to] = v;
        g.edge[to] = e;
      }
      place += __popc(kept);
      __syncwarp();
    }
    if (lane_id() == 0) g.last[u] = place;
    fill(first, place, lane_id(), 32, [] { __syncwarp(); });
  }

  // As by a warp. Whole blocks call it.
  __device__ void shrink_by_block(i64 u) const {
    i64 first = g.first[u], place = first, last = g.last[u];
    for (i64 start = first; start < last; start += BLOCK * OF_THREAD) {
      i64 i = start + threadIdx.x * OF_THREAD;
      u32 v[OF_THREAD];
      i32 e[OF_THREAD];
      u32 keep = 0;
#pragma unroll
      for (u32 k = 0; k < OF_THREAD; ++k) {
        v[k] = i + k < last ? g.indices[i + k] : 0;
        e[k] = i + k < last ? g.edge[i + k] : -1;
      }
#pragma unroll
      for (u32 k = 0; k < OF_THREAD; ++k)
        if (e[k] >= 0 && fate[e[k]] != GONE) keep |= 1u << k;
      u32 total;
      i64 to = place + block_exclusive<BLOCK>(u32(__popc(keep)), total);
#pragma unroll
      for (u32 k = 0; k < OF_THREAD; ++k) {
        if (!(keep >> k & 1)) continue;
        g.indices[to] = v[k];
        g.edge[to++] = e[k];
      }
      place += total;
    }
    __syncthreads();  // all of the row's ends are read, and its entries written
    if (threadIdx.x == 0) g.last[u] = place;
    fill(first, place, threadIdx.x, BLOCK, [] { __syncthreads(); });
    __syncthreads();
  }

  __device__ bool shrink(const Peeling&, i64 living) {
    if (4 * living > 3 * held) return false;
    held = living;
    for (i64 k = blockIdx.x; k < long_count; k += gridDim.x) shrink_by_block(longs[k]);
    for (i64 u = warp_number(); u < g.n; u += warp_count())
      if (g.first[u + 1] - g.first[u] < LONG) shrink_by_warp(u);
    return true;
  }

  __device__ u32 pieces(u32 e) const {
    Ends ends = rows_of(g, e);
    return pieces_of<PIECE>(ends.end_a - ends.a);
  }

  // Look up `count` candidates in the longer row, 32 at most, each being so many entries behind the
  // start of the shorter.
  template <class Visit>
  __device__ void look_up(const Ends& ends, const u32* waiting, u32 count, Visit visit) const {
    u32 lanes = count > 8 ? 1 : count > 4 ? 4 : count > 2 ? 8 : count > 1 ? 16 : 32;
    bool has = lane_id() / lanes < count;
    i64 i = ends.a + (has ? waiting[lane_id() / lanes] : 0);
    i32 f = has ? g.edge[i] : -1, other = -1;
    if (has && fate[f] == GONE) f = -1;
    u32 w = g.indices[i], j, length = f < 0 ? 0 : u32(ends.end_b - ends.b);
    const u32* row = g.indices + ends.b;
    if (lanes == 1) {
      j = lower_bound(row, 0u, length, w);
      if (j < length && row[j] != w) j = length;
    } else {
      __syncwarp();
      j = find_together(row, length, w, lanes);
    }
    if (j == length || lane_id() % lanes)
      f = -1;
    else
      other = g.edge[ends.b + j];
    __syncwarp();
    visit(f, other);
  }

  template <class Visit>
  __device__ void each(u32 e, u32 part, u32 size, Visit visit) const {
    __shared__ u32 shared[BLOCK / 32][32 * (STEPS + 1)];
    u32* waiting = shared[warp_id()];
    u32 count = 0;
    Ends ends = rows_of(g, e);
    Filter filter = filter_of(ends.b, ends.end_b);
    u32 start = part * size, last = u32(min(i64(start) + size, ends.end_a - ends.a));
    for (; start < last; start += 32 * STEPS) {
      bool maybe[STEPS];
#pragma unroll
      for (u32 k = 0; k < STEPS; ++k) {
        u32 at = start + 32 * k + lane_id();
        maybe[k] = at < last && filter.may_hold(g.indices[ends.a + at]);
      }
#pragma unroll
      for (u32 k = 0; k < STEPS; ++k) {
        u32 all = __ballot_sync(ALL_LANES, maybe[k]);
        if (maybe[k]) waiting[count + lanes_before(all)] = start + 32 * k + lane_id();
        count += __popc(all);
      }
      __syncwarp();
      while (count >= 32) {
        count -= 32;
        look_up(ends, waiting + count, 32, visit);
      }
      __syncwarp();
    }
    if (count) look_up(ends, waiting, count, visit);
    __syncwarp();
  }
};
