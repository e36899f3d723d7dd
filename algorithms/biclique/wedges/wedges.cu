// Wedges counted by their ends (algorithms/biclique/wedges).
//
// A wedge is a start u, a neighbour v of u from number `after[u]` on, and a w after u in v's row.
// Rows are sorted, so the w are the end of v's row. The kernel `lengths` finds how many there are
// for every entry (u, v), and the running sum of these numbers all wedges, those of one start side
// by side. A thread finds the entry of a wedge by binary search, so work is divided evenly whatever
// the lengths of rows.
//
// The counters of a start lie in shared memory, in one of three shapes, each with its own launch:
//
// light   A hash table for each warp, for starts with few wedges.
// middle  A hash table for each block. Blocks take starts from a counter.
// heavy   A counter for each w, in windows of WINDOW numbers. A warp searches a row for the part
//         within the window. Starts are taken in the order of falling numbers of wedges.
//
// A Visit says what is done with the counts: butterflies need the count before each wedge, a
// histogram the counts at the end.
//
// Instances: light<Pairs>, light<Histogram>, middle<Pairs>, middle<Histogram>, heavy<Pairs>,
//   heavy<Histogram>
#include "lpma/cuda/lanes.cuh"
#include "lpma/cuda/rows.cuh"
#include "lpma/cuda/take.cuh"

// The host has these four, too: wedges/cuda.py.
constexpr u32 LIGHT_SLOTS = 512;    // twice the most wedges of a light start
constexpr u32 LIGHT_THREADS = 256;
constexpr u32 MIDDLE_SLOTS = 8192;  // 4/3 of the most wedges of a middle start
constexpr u32 WINDOW = 24576;       // counters

constexpr u32 NONE = ~0u;   // an empty slot: no w is as large
constexpr u32 SHORT = 512;  // bins of the histogram that a block has in shared memory

// length[e], for entry e = (u, v): how many w after u are in v's row; 0 if v is before after[u].
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
  const i64* first_wedge;  // of every entry; at the end the number of all wedges

  // The end w of wedge k, which belongs to one of the entries e … last. Moves e up to that entry.
  __device__ u32 end_of(i64 k, i64& e, i64 last) const {
    e = last_start(first_wedge, e, last, k);
    return other[other_indptr[indices[e] + 1ll] - (first_wedge[e + 1] - k)];
  }
};

// A Visit that counts the pairs of wedges with the same ends.
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

// A Visit that counts in bins[c] the ends of c wedges, for c ≥ least.
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
    else if (atomicAdd(&shared_bins()[c], 1u) == NONE)  // it has overflowed to 0
      atomicAdd(&bins[c], 1ull << 32);
  }
  __device__ void finish() {
    __syncthreads();
    for (u32 c = threadIdx.x; c < SHORT; c += blockDim.x)
      if (shared_bins()[c]) atomicAdd(&bins[c], u64(shared_bins()[c]));
  }
};

// A hash table with open addressing. The hash is the high bits of w + 1 times an odd number.
struct Table {
  u32* keys;
  u32* counts;
  u32 bits;

  // Empty it for so many wedges, with at most `most` slots; each thread clears a share of them.
  __device__ void clear(i64 wedges, u32 most, u32 thread, u32 threads) {
    u32 slots = min(most, u32(2 * wedges));
    bits = slots <= 32 ? 5 : 32 - __clz(slots - 1);
    for (u32 slot = thread; slot < 1u << bits; slot += threads) {
      keys[slot] = NONE;
      counts[slot] = 0;
    }
  }
  // Counts one more wedge to w; returns how many there were before.
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
