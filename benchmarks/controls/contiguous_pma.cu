// The control for expansions: a packed-memory array in one piece, in GPMA+'s manner.
//
// Source: Sha, Li, He, Tan (VLDB 2017), as the LPMA paper describes it: segments of 32 slots lie
// in key order in one array; a batch's edges go to the lowest window that has room for them,
// tried from the leaf up; when the root is full the array is doubled and everything spread anew.
// Segments, bounds and the even spread are those of lpma's store. It is kinder than GPMA+ in one
// thing: where windows nest, only the outermost is rebalanced, so no work is done twice.
//
// Trick: after the batch, an edge's rank among all edges is a sum of what is known on the spot:
// edges in segments before its own, its place there, and new rows before it. So windows of any
// size, and the global rebalance, move every edge by itself: to scratch, then to its segment; or
// straight into the doubled array.
#include "benchmarks/controls/sorted_batch.cuh"

constexpr u32 THREADS = 256;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 SEGMENT = 32;  // one lane a slot
constexpr u64 NEVER = ~0ull;

struct Columns {
  u64* keys;
  float* weights;
  i64* times;
};

// A window to rebalance: its segments, where they stand in the list of work, its rows, and the
// edges that it will hold.
struct Window {
  u32 first, segments, work, row, end, edges;
};

__device__ __forceinline__ void move_edge(Columns from, u64 at, Columns to, u64 there) {
  to.keys[there] = from.keys[at];
  to.weights[there] = from.weights[at];
  to.times[there] = from.times[at];
}

// The first row from `row` on that belongs to segment `wanted` or a later one; it is near.
__device__ __forceinline__ u32 row_of_segment(const u32* leaf, u32 row, u32 rows, u32 wanted) {
  u32 step = 1;
  while (row + step < rows && leaf[row + step - 1] < wanted) row += step, step *= 2;
  u32 end = min(row + step, rows);
  return row + u32(lower_bound(leaf + row, end - row, wanted));
}

// Edges spread evenly over segments: segment i's first one, by rank within the window.
__device__ __forceinline__ u64 spread_first(u64 edges, u64 segments, u64 i) {
  return i * (edges / segments) + min(i, edges % segments);
}

// The slot, counted from the window's first, of the edge of that rank.
__device__ __forceinline__ u64 spread_slot(u64 edges, u64 segments, u64 rank) {
  u64 each = edges / segments, longer = edges % segments;
  if (rank < longer * (each + 1)) return rank / (each + 1) * SEGMENT + rank % (each + 1);
  rank -= longer * (each + 1);
  return (longer + rank / each) * SEGMENT + rank % each;
}

// Every row's segment; known keys get their weight and time at once; `old`, the rows that add no
// edge, are counted.
extern "C" __global__ void __launch_bounds__(COUNTED)
    settle(u64* pma_keys, float* pma_weights, i64* pma_times, const u64* fences,
           const u32* counts, u32 segments, const u64* keys, const i64* order,
           const float* weights, const i64* times, u32 k, u32* leaf, u32* old, u32* blocks,
           float* row_weight, i64* row_time) {
  u32 j = blockIdx.x * COUNTED + threadIdx.x;
  bool flag = false;
  if (j < k) {
    u64 key = keys[j];
    flag = j > 0 && keys[j - 1] == key;
    // The last segment whose fence is not above the key; the first has no fence to pass.
    u32 s = key == NEVER ? segments - 1 : lower_bound(fences + 1, segments - 1, key + 1);
    leaf[j] = s;
    if (!flag) {
      float weight;
      i64 time;
      fold_run(keys, k, j, order, weights, times, &weight, &time);
      const u64* slots = pma_keys + u64(s) * SEGMENT;
      u32 at = lower_bound(slots, counts[s], key);
      flag = at < counts[s] && slots[at] == key;
      if (flag) {
        pma_weights[u64(s) * SEGMENT + at] += weight;
        pma_times[u64(s) * SEGMENT + at] = time;
      } else {
        row_weight[j] = weight;
        row_time[j] = time;
      }
    }
  }
  count_flags(flag, j, k + 1, old, blocks);
}

extern "C" __global__ void __launch_bounds__(COUNTED)
    sum_counts(u32* blocks, u32 count, u32 k, u64* added) {
  u32 total = sum_blocks(blocks, count);
  if (threadIdx.x == 0) *added = k - total;
}

// The new rows, one after the other.
extern "C" __global__ void keep_new(const u64* keys, const float* row_weight, const i64* row_time,
                                    const u32* leaf, const u32* old, const u32* blocks, u32 k,
                                    u64* new_keys, float* new_weights, i64* new_times,
                                    u32* new_leaf) {
  u32 j = blockIdx.x * THREADS + threadIdx.x;
  if (j >= k) return;
  u32 before = flagged_before(old, blocks, j);
  if (flagged_before(old, blocks, j + 1) != before) return;
  new_keys[j - before] = keys[j];
  new_weights[j - before] = row_weight[j];
  new_times[j - before] = row_time[j];
  new_leaf[j - before] = leaf[j];
}

// The first new row of every touched segment finds the lowest window with room, and marks it.
extern "C" __global__ void choose_windows(const u32* leaf, u32 rows, const u32* prefix,
                                          const i64* most, int m, u32* mark, u32 stamp,
                                          unsigned char* layer) {
  u32 r = blockIdx.x * THREADS + threadIdx.x;
  if (r >= rows || (r && leaf[r - 1] == leaf[r])) return;
  u32 s = leaf[r];
  for (int l = 0; l <= m; ++l) {
    u32 first = s >> l << l, end = first + (1u << l);
    u32 from = l ? lower_bound(leaf, r, first) : r;
    i64 incoming = row_of_segment(leaf, r, rows, end) - from;
    if (i64(prefix[end] - prefix[first]) + incoming > most[l] && l < m) continue;
    mark[(1u << (m - l)) + (s >> l)] = stamp;
    layer[r] = l;
    return;
  }
}

// The first new row of every outermost marked window lists it. *listed: windows << 32 | segments.
extern "C" __global__ void __launch_bounds__(THREADS)
    list_windows(const u32* leaf, u32 rows, const u32* prefix, int m, const u32* mark, u32 stamp,
                 const unsigned char* layer, u64* listed, Window* windows, u32* work) {
  u32 r = blockIdx.x * THREADS + threadIdx.x, lane = threadIdx.x % 32;
  Window mine = {0, 0, 0, r, 0, 0};
  if (r < rows && !(r && leaf[r - 1] == leaf[r])) {
    u32 s = leaf[r];
    int top = layer[r];
    for (int l = top + 1; l <= m; ++l)
      if (mark[(1u << (m - l)) + (s >> l)] == stamp) top = l;
    mine.first = s >> top << top;
    if (!(r && leaf[r - 1] >= mine.first)) {
      mine.segments = 1u << top;
      mine.end = row_of_segment(leaf, r, rows, mine.first + mine.segments);
      mine.edges = prefix[mine.first + mine.segments] - prefix[mine.first] + mine.end - r;
    }
  }
  u32 many = mine.segments, before = many;
  for (int by = 1; by < 32; by <<= 1) {
    u32 other = __shfl_up_sync(ALL_LANES, before, by);
    if (lane >= by) before += other;
  }
  u32 all = __shfl_sync(ALL_LANES, before, 31), votes = __ballot_sync(ALL_LANES, many > 0);
  if (!votes) return;
  u64 place = 0;
  if (lane == 0) place = atomicAdd(listed, u64(__popc(votes)) << 32 | all);
  place = __shfl_sync(ALL_LANES, place, 0);
  u32 number = u32(place >> 32) + __popc(votes & ((1u << lane) - 1));
  mine.work = u32(place) + before - many;
  if (many) windows[number] = mine;
  for (u32 rest = votes; rest; rest &= rest - 1) {  // the warp writes each one's work together
    int who = __ffs(rest) - 1;
    u32 to = __shfl_sync(ALL_LANES, mine.work, who), size = __shfl_sync(ALL_LANES, many, who);
    u32 what = __shfl_sync(ALL_LANES, number, who);
    for (u32 i = lane; i < size; i += 32) work[to + i] = what;
  }
}

// A warp a segment: its edges and its new rows, merged, each to the place of its rank.
__device__ __forceinline__ void merge_segment(Columns pma, u32 s, u32 count, u64 before, Columns fresh,
                                              u32 lo, u32 hi, Columns to, u64 edges, u64 segments) {
  u32 lane = threadIdx.x % 32;
  u64 slot = u64(s) * SEGMENT;
  u64 key = lane < count ? pma.keys[slot + lane] : NEVER;
  if (lane < count) {
    u64 rank = before + lane + lo + lower_bound(fresh.keys + lo, hi - lo, key);
    move_edge(pma, slot + lane, to, segments ? spread_slot(edges, segments, rank) : rank);
  }
  for (u32 row = lo + lane; row < hi; row += 32) {
    u64 rank = before + row + lower_bound(pma.keys + slot, count, fresh.keys[row]);
    move_edge(fresh, row, to, segments ? spread_slot(edges, segments, rank) : rank);
  }
}

// Every edge and row of the listed windows to scratch, at its rank among all edges.
extern "C" __global__ void __launch_bounds__(THREADS)
    gather(u64* keys, float* weights, i64* times, const u32* counts, const u32* prefix,
           u64* new_keys, float* new_weights, i64* new_times, const u32* leaf, const u64* listed,
           const Window* windows, const u32* work, u64* to_keys, float* to_weights,
           i64* to_times) {
  u32 all = u32(*listed), warps = gridDim.x * WARPS;
  for (u32 v = blockIdx.x * WARPS + threadIdx.x / 32; v < all; v += warps) {
    Window w = windows[work[v]];
    u32 s = w.first + v - w.work;
    u32 lo = row_of_segment(leaf, w.row, w.end, s), hi = row_of_segment(leaf, lo, w.end, s + 1);
    merge_segment({keys, weights, times}, s, counts[s], prefix[s],
                  {new_keys, new_weights, new_times}, lo, hi, {to_keys, to_weights, to_times}, 0,
                  0);
  }
}

// And back, evenly over each window's segments.
extern "C" __global__ void __launch_bounds__(THREADS)
    spread(u64* from_keys, float* from_weights, i64* from_times, const u32* prefix,
           const u64* listed, const Window* windows, const u32* work, u32 segments, u64* keys,
           float* weights, i64* times, u32* counts, u64* fences) {
  u32 all = u32(*listed), warps = gridDim.x * WARPS, lane = threadIdx.x % 32;
  for (u32 v = blockIdx.x * WARPS + threadIdx.x / 32; v < all; v += warps) {
    Window w = windows[work[v]];
    u32 i = v - w.work, s = w.first + i;
    u64 first = spread_first(w.edges, w.segments, i);
    u32 count = spread_first(w.edges, w.segments, i + 1) - first;
    first += u64(prefix[w.first]) + w.row;
    if (lane < count)
      move_edge({from_keys, from_weights, from_times}, first + lane, {keys, weights, times},
                u64(s) * SEGMENT + lane);
    if (lane) continue;
    counts[s] = count;
    u32 next = w.first + w.segments;  // an empty segment stands before what follows the window
    if (i) fences[s] = count ? from_keys[first] : next < segments ? fences[next] : NEVER;
  }
}

// The global rebalance: everything and the new rows, spread over `segments` segments of another
// array. A warp takes 32 segments, whose rows its lanes look up together.
extern "C" __global__ void __launch_bounds__(THREADS)
    rebalance_all(u64* keys, float* weights, i64* times, const u32* counts, const u32* prefix,
                  u32 old_segments, u64* new_keys, float* new_weights, i64* new_times,
                  const u32* leaf, u32 rows, u64 edges, u64 segments, u64* to_keys,
                  float* to_weights, i64* to_times) {
  u32 lane = threadIdx.x % 32, warp = blockIdx.x * WARPS + threadIdx.x / 32;
  u32 s = min(warp * 32 + lane, old_segments);
  u32 row = lower_bound(leaf, rows, s);
  u32 held = s < old_segments ? counts[s] : 0, before = prefix[s];
  u32 end = __shfl_down_sync(ALL_LANES, row, 1);
  if (lane == 31) end = row_of_segment(leaf, row, rows, s + 1);
  for (int who = 0; who < 32 && warp * 32 + who < old_segments; ++who)
    merge_segment({keys, weights, times}, warp * 32 + who, __shfl_sync(ALL_LANES, held, who),
                  __shfl_sync(ALL_LANES, before, who), {new_keys, new_weights, new_times},
                  __shfl_sync(ALL_LANES, row, who), __shfl_sync(ALL_LANES, end, who),
                  {to_keys, to_weights, to_times}, edges, segments);
}

// The counts and fences of segments over which `edges` were spread.
extern "C" __global__ void count_all(const u64* keys, u64 edges, u32 segments, u32* counts,
                                     u64* fences) {
  u32 s = blockIdx.x * THREADS + threadIdx.x;
  if (s >= segments) return;
  u32 count = spread_first(edges, segments, s + 1) - spread_first(edges, segments, s);
  counts[s] = count;
  fences[s] = s == 0 ? 0 : count ? keys[u64(s) * SEGMENT] : NEVER;
}
