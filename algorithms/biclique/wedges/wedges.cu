// Wedges counted by their ends, as algorithms/biclique/wedges/__init__.py describes.
//
// A wedge goes from a *start* u over a neighbour v, from after[u] on, to an end w after u in the
// row of v. Rows are sorted, so these ends are the end of v's row. `lengths` says how many there
// are for every entry (u, v), and running sums of that number all wedges. Where a start's wedges
// lie side by side in that numbering, a lane finds the entry of its wedge by search, so rows of any
// shape are shared out evenly.
//
// Counters of a start lie in shared memory, in one of three shapes, each in a launch of its own:
//
// light   A warp's hash table, for starts of few wedges.
// middle  A block's hash table; blocks take starts as they come free.
// heavy   A counter for each w, in windows of as many as fit. A warp looks for the window's part
//         of a row by search. Starts are taken from the one with most wedges down.
//
// What is done with the counts is a Visit: butterflies need the count before each wedge, a
// histogram those at the end.
#include "lpma/cuda/lanes.cuh"
#include "lpma/cuda/rows.cuh"
#include "lpma/cuda/take.cuh"

constexpr u32 NONE = ~0u;            // no vertex
constexpr u32 LIGHT_SLOTS = 512;     // twice a light start's wedges; also in cuda.py
constexpr u32 LIGHT_THREADS = 256;
constexpr u32 MIDDLE_SLOTS = 8192;   // 4/3 of a middle start's
constexpr u32 WINDOW = 24576;
constexpr u32 SHORT = 512;           // counts whose bins a block has in shared memory

// length[e]: for entry e = (u, v), how many w after u the row of v has; 0 where v is before
// after[u].
extern "C" __global__ void lengths(const i64* indptr, const u32* indices, i64 n, i64 m,
                                   const i64* other_indptr, const u32* other, const i64* after,
                                   i64* length) {
  i64 u = row_of_entry(indptr, n, m);
  i64 e = thread_number();
  if (e >= m) return;
  i64 v = indices[e], end = other_indptr[v + 1];
  length[e] = v < after[u] ? 0 : end - lower_bound(other, other_indptr[v], end, u32(u) + 1);
}

struct Graph {
  const i64* indptr;
  const u32* indices;
  const i64* other_indptr;
  const u32* other;
  const i64* first_wedge;  // of every entry; behind them the number of all wedges

  // The end of wedge k, which belongs to one of entries e … last; e moves up to that entry.
  __device__ u32 end_of(i64 k, i64& e, i64 last) const {
    e = last_start(first_wedge, e, last, k);
    return other[other_indptr[indices[e] + 1ll] - (first_wedge[e + 1] - k)];
  }
};

// Count pairs of wedges with the same ends.
struct Pairs {
  u64* total;
  u64 found;

  __device__ Pairs(u64* total, i64) : total(total), found(0) {}
  __device__ void count(u32 before) { found += before; }
  __device__ void end(u32) {}
  __device__ void finish() {
    u64 all = warp_sum(found);
    if (lane_id() == 0 && all) atomicAdd(total, all);
  }
};

// bins[c]: the number of ends with c wedges, c >= least.
struct Histogram {
  u64* bins;
  i64 least;

  __device__ u32* shared_bins() {
    __shared__ u32 held[SHORT];
    return held;
  }
  __device__ Histogram(u64* bins, i64 least) : bins(bins), least(least) {
    for (u32 c = threadIdx.x; c < SHORT; c += blockDim.x) shared_bins()[c] = 0;
    __syncthreads();
  }
  __device__ void count(u32) {}
  __device__ void end(u32 c) {
    if (c < least) return;
    if (c >= SHORT)
      atomicAdd(&bins[c], 1ull);
    else if (atomicAdd(&shared_bins()[c], 1u) == NONE)  // it was full and is 0 again
      atomicAdd(&bins[c], 1ull << 32);
  }
  __device__ void finish() {
    __syncthreads();
    for (u32 c = threadIdx.x; c < SHORT; c += blockDim.x)
      if (shared_bins()[c]) atomicAdd(&bins[c], u64(shared_bins()[c]));
  }
};

// A hash table with open addressing. Multiplying w + 1 by an odd number spreads it; the slot is the
// product's high bits.
struct Table {
  u32* keys;
  u32* counts;
  u32 bits;

  // Make room for the ends of `wedges` wedges, in `most` slots at most. Each thread clears its
  // slots.
  __device__ void clear(i64 wedges, u32 most, u32 thread, u32 threads) {
    u32 slots = min(most, u32(2 * wedges));
    bits = slots <= 32 ? 5 : 32 - __clz(slots - 1);
    for (u32 slot = thread; slot < 1u << bits; slot += threads) {
      keys[slot] = NONE;
      counts[slot] = 0;
    }
  }
  // Count one more wedge that ends at w. Returns how many did before.
  __device__ u32 add(u32 w) {
    u32 slot = (w + 1) * 2654435769u >> (32 - bits);
    for (;;) {
      u32 held = atomicCAS(&keys[slot], NONE, w);
      if (held == NONE || held == w) return atomicAdd(&counts[slot], 1u);
      slot = (slot + 1) & ((1u << bits) - 1);
    }
  }
};

template <class Visit>
__global__ void __launch_bounds__(LIGHT_THREADS)
    light(Graph g, const i64* starts, i64 number, i64 least, u64* found) {
  __shared__ u32 keys[LIGHT_THREADS / 32][LIGHT_SLOTS], counts[LIGHT_THREADS / 32][LIGHT_SLOTS];
  Table table = {keys[warp_id()], counts[warp_id()], 0};
  Visit visit(found, least);
  i64 warps = warp_count();
  for (i64 i = warp_number(); i < number; i += warps) {
    i64 u = starts[i], e = g.indptr[u], last = g.indptr[u + 1] - 1;
    i64 first = g.first_wedge[e], end = g.first_wedge[last + 1];
    table.clear(end - first, LIGHT_SLOTS, lane_id(), 32);
    __syncwarp();
    for (i64 k = first + lane_id(); k < end; k += 32)
      visit.count(table.add(g.end_of(k, e, last)));
    __syncwarp();
    for (u32 slot = lane_id(); slot < 1u << table.bits; slot += 32) visit.end(table.counts[slot]);
    __syncwarp();
  }
  visit.finish();
}

template <class Visit>
__global__ void middle(Graph g, const i64* starts, i64 number, i64 least, u64* found, u64* next) {
  extern __shared__ u32 memory[];
  Table table = {memory, memory + MIDDLE_SLOTS, 0};
  Visit visit(found, least);
  for (i64 taken; (taken = take_for_block(next)) < number;) {
    i64 u = starts[taken], e = g.indptr[u], last = g.indptr[u + 1] - 1;
    i64 first = g.first_wedge[e], end = g.first_wedge[last + 1];
    table.clear(end - first, MIDDLE_SLOTS, threadIdx.x, blockDim.x);
    __syncthreads();
    for (i64 k = first + threadIdx.x; k < end; k += blockDim.x)
      visit.count(table.add(g.end_of(k, e, last)));
    __syncthreads();
    for (u32 slot = threadIdx.x; slot < 1u << table.bits; slot += blockDim.x)
      visit.end(table.counts[slot]);
  }
  visit.finish();
}

template <class Visit>
__global__ void heavy(Graph g, i64 n, const i64* starts, i64 number, i64 least, u64* found,
                      u64* next) {
  extern __shared__ u32 counts[];
  Visit visit(found, least);
  for (u32 i = threadIdx.x; i < WINDOW; i += blockDim.x) counts[i] = 0;
  for (i64 taken; (taken = take_for_block(next)) < number;) {
    i64 u = starts[taken];
    for (i64 low = u + 1; low < n; low += WINDOW) {
      u32 high = u32(min(low + WINDOW, n));
      for (i64 e = g.indptr[u] + warp_id(); e < g.indptr[u + 1]; e += blockDim.x / 32) {
        i64 length = g.first_wedge[e + 1] - g.first_wedge[e];
        if (length == 0) continue;
        i64 end = g.other_indptr[g.indices[e] + 1ll];
        i64 i = lower_bound(g.other, end - length, end, u32(low)) + lane_id();
        for (; i < end && g.other[i] < high; i += 32)
          visit.count(atomicAdd(&counts[g.other[i] - low], 1u));
      }
      __syncthreads();
      for (u32 i = threadIdx.x; i < high - low; i += blockDim.x) {
        visit.end(counts[i]);
        counts[i] = 0;
      }
      __syncthreads();
    }
  }
  visit.finish();
}
