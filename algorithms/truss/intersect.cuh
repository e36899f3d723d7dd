// The triangles of an edge by intersecting the rows of its ends, for the peeling of peel.cuh.
//
// Idea: candidates are the entries of the shorter row, and few of them close a triangle. So each
// row also has a Bloom filter, of BITS bits for an entry: an entry's hash chooses a word and
// three bits of it (Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters",
// WEA 2007). A candidate for which they are not all set in the longer row's filter is not there;
// that is one read, of a word that stays in the caches while a hub's edges are peeled. Candidates
// that are left wait in shared memory until a warp has one for every lane. Only they are looked up,
// in the longer row's hash table of places: what bounds this kernel is how many words a warp's
// lanes read apart from each other, and a binary search reads four times as many.
//
// Edges that are GONE are dropped from the rows, and filters and tables made anew, whenever a third
// of the edges held is. A warp does a row, and a block one of LONG entries or more.
//
// Requires: rows that were not changed but by `shrink`; blocks of BLOCK threads.
#pragma once
#include "algorithms/truss/edge_rows.cuh"
#include "algorithms/truss/peel.cuh"
#include "lpma/cuda/scan.cuh"

constexpr u32 BLOCK = 256;       // as in lpma/cuda/launch.py
constexpr i64 BITS = 16;         // of the filters for an entry; algorithms/truss/cuda.py
constexpr i64 PLACES = 3;        // of the tables for two entries; algorithms/truss/cuda.py
constexpr u32 NOWHERE = 0xffffffff;
constexpr i64 LONG = 4096;       // algorithms/truss/cuda.py
constexpr u32 STEPS = 4;         // candidates that a lane looks at together
constexpr u32 OF_THREAD = 4;     // entries of a long row that a thread looks at together

__device__ __forceinline__ u32 hash_of(u32 w) { return w * 0x9E3779B1u; }

// A row's filter: the whole words among the bits of its entries. There may be none.
struct Filter {
  u32* words;
  u32 count;

  __device__ u32* word_of(u32 hash) const { return words + (u64(hash) * count >> 32); }
  __device__ u32 bits_of(u32 hash) const {
    u32 other = hash * 0x85EBCA6Bu;
    return 1u << (other >> 27) | 1u << (other >> 22 & 31) | 1u << (other >> 17 & 31);
  }
  // False only if w is not in the row.
  __device__ bool may_hold(u32 w) const {
    if (count == 0) return true;
    u32 hash = hash_of(w), bits = bits_of(hash);
    return (*word_of(hash) & bits) == bits;
  }
};

// Where a row holds its entries, by their hashes, with linear probing.
struct Table {
  u32* places;
  u32 size;  // at least the row's entries

  __device__ u32 begin(u32 w) const { return u32(u64(hash_of(w)) * size >> 32); }
  __device__ u32 next(u32 at) const { return at + 1 == size ? 0 : at + 1; }

  __device__ void put(u32 w, u32 place) const {
    u32 at = begin(w);
    while (atomicCAS(&places[at], NOWHERE, place) != NOWHERE) at = next(at);
  }
  // Where `row` holds w; NOWHERE if it does not.
  __device__ u32 find(const u32* row, u32 w) const {
    u32 at = begin(w);
    for (u32 tried = 0; tried < size; ++tried) {
      u32 place = places[at];
      if (place == NOWHERE || row[place] == w) return place;
      at = next(at);
    }
    return NOWHERE;
  }
};

struct Intersected {
  static constexpr u32 PIECE = 1024, MOST_SHIFT = 3;

  EdgeRows g;
  const u8* fate;
  u32* filters;      // BITS for each entry of the rows
  u32* tables;       // PLACES for two entries
  const u32* longs;  // the rows that had LONG entries or more at first
  i64 long_count;
  i64 held;          // edges in the rows, or more

  __device__ Filter filter_of(i64 first, i64 last) const {
    i64 from = (first * BITS + 31) / 32, to = last * BITS / 32;
    return {filters + from, u32(max(to - from, i64(0)))};
  }

  __device__ Table table_of(i64 first, i64 last) const {
    i64 from = first * PLACES / 2;
    return {tables + from, u32(last * PLACES / 2 - from)};
  }

  // Fill the filter and the table of row first … last - 1 by threads `rank`, `rank` + `count`, … of
  // a group that `sync` has wait for each other.
  template <class Sync>
  __device__ void fill(i64 first, i64 last, u32 rank, u32 count, Sync sync) const {
    Filter filter = filter_of(first, last);
    Table table = table_of(first, last);
    for (u32 i = rank; i < filter.count; i += count) filter.words[i] = 0;
    for (u32 i = rank; i < table.size; i += count) table.places[i] = NOWHERE;
    sync();
    for (i64 i = first + rank; i < last; i += count) {
      u32 w = g.indices[i], hash = hash_of(w);
      if (filter.count) atomicOr(filter.word_of(hash), filter.bits_of(hash));
      table.put(w, u32(i - first));
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
    if (3 * living > 2 * held) return false;
    held = living;
    for (i64 k = blockIdx.x; k < long_count; k += gridDim.x) shrink_by_block(longs[k]);
    for (i64 u = warp_number(); u < g.n; u += warp_count())
      if (g.first[u + 1] - g.first[u] < LONG) shrink_by_warp(u);
    return true;
  }

  __device__ u32 pieces(u32 e) const {
    Ends ends = rows_of(g, e);
    return u32((ends.end_a - ends.a + PIECE - 1) / PIECE);
  }

  // Look up a candidate in the longer row, on lanes that have one, so many entries behind the
  // start of the shorter.
  template <class Visit>
  __device__ void look_up(const Ends& ends, bool has, u32 offset, Visit visit) const {
    i32 f = -1, other = -1;
    if (has) {
      i32 of_a = g.edge[ends.a + offset];
      if (fate[of_a] != GONE) {
        u32 w = g.indices[ends.a + offset];
        u32 place = table_of(ends.b, ends.end_b).find(g.indices + ends.b, w);
        if (place != NOWHERE) {
          f = of_a;
          other = g.edge[ends.b + place];
        }
      }
    }
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
        look_up(ends, true, waiting[count + lane_id()], visit);
      }
      __syncwarp();
    }
    if (count) look_up(ends, lane_id() < count, waiting[lane_id()], visit);
    __syncwarp();
  }
};
