// Connected components: a forest of parents, hooked together edge by edge.
//
// Source: Jaiganesh and Burtscher, "A high-performance connected components implementation for
// GPUs", HPDC 2018 (ECL-CC). Every vertex first hangs under a smaller neighbour, which needs no
// atomic and joins most of the graph. Then each edge whose ends are in two trees hooks the larger
// root under the smaller one. A thread takes an entry, not a row, so that hubs are no burden.
//
// Source of what a large graph gets besides: Sutton, Ben-Nun and Barak, "Optimizing parallel graph
// connectivity computation via subgraph sampling", IPDPS 2018 (Afforest). Each vertex is joined
// with another neighbour, and the largest tree guessed from a sample. Most edges then have both
// ends in it, and need nothing. Which vertices are in it is kept as a bitmap, which the caches hold
// where they do not hold parents. In a symmetric graph the rows of its vertices are not looked at:
// the other ends are either in it or look at the edge themselves. In a directed one only the few
// entries that lead out of it need to know their rows.
//
// Encoding: parent[v] <= v; v is a root where they are equal, and labels are roots at the end.
#include "algorithms/components/forest.cuh"
#include "lpma/cuda/lanes.cuh"
#include "lpma/cuda/rows.cuh"

constexpr u32 SAMPLE = 256;       // vertices, a thread each; cuda.py has it too
constexpr u64 LEAP = 0x9E3779B1;  // from one to the next: a prime, near 2^32 / 1.618
constexpr u32 BLOCK = 256, EACH = 8, TILE = BLOCK * EACH;  // entries; cuda.py has TILE too

// A thread a vertex: parent = the first neighbour, where that one is smaller.
extern "C" __global__ void hang(const i64* indptr, const u32* indices, i64 n, i32* parent) {
  i64 v = thread_number();
  if (v >= n) return;
  i64 first = indptr[v];
  bool is_alone = first == indptr[v + 1];
  parent[v] = is_alone ? i32(v) : min(i32(v), i32(indices[first]));
}

// A thread a vertex: join it with its last neighbour.
extern "C" __global__ void join_last(const i64* indptr, const u32* indices, i64 n, i32* parent) {
  i64 v = thread_number();
  if (v >= n) return;
  i64 first = indptr[v], end = indptr[v + 1];
  if (first < end) unite(i32(v), i32(indices[end - 1]), parent);
}

// One block of SAMPLE threads: the root that most vertices of a sample hang under.
extern "C" __global__ void find_largest(i64 n, i32* parent, i32* largest) {
  __shared__ i32 roots[SAMPLE];
  __shared__ u64 best;
  i32 root = root_of(i32(threadIdx.x * LEAP % n), parent);
  roots[threadIdx.x] = root;
  if (threadIdx.x == 0) best = 0;
  __syncthreads();
  u32 members = 0;
  for (u32 i = 0; i < SAMPLE; ++i) members += roots[i] == root;
  atomicMax(&best, u64(members) << 32 | u32(root));
  __syncthreads();
  if (threadIdx.x == 0) *largest = i32(best);
}

// The root of v's tree while no tree changes, but paths are shortened: hence volatile.
__device__ __forceinline__ i32 settled_root(i64 v, const i32* parent) {
  const volatile i32* read = parent;
  i32 at = read[v], above;
  while (at != (above = read[at])) at = above;
  return at;
}

// A thread a vertex: hang it directly under its root.
extern "C" __global__ void flatten(i64 n, i32* parent) {
  i64 v = thread_number();
  if (v < n) parent[v] = settled_root(v, parent);
}

// The same, and set the bits of the vertices in the largest tree: in `inside`, and with those that
// have no entries in `settled`.
extern "C" __global__ void flatten_and_mark(const i64* indptr, i64 n, i32* parent,
                                            const i32* largest, u32* inside, u32* settled) {
  i64 v = thread_number();
  i32 root = v < n ? settled_root(v, parent) : -1;
  if (v < n) parent[v] = root;
  u32 bits = __ballot_sync(ALL_LANES, v < n && root == *largest);
  u32 empty = __ballot_sync(ALL_LANES, v < n && indptr[v] == indptr[v + 1]);
  if (lane_id() || v >= n) return;
  inside[v >> 5] = bits;
  settled[v >> 5] = bits | empty;
}

// A thread an entry. In a symmetric graph the entries to smaller neighbours are all edges.
extern "C" __global__ void hook(const i64* indptr, const u32* indices, i64 n, i64 m,
                                i64 is_symmetric, i32* parent) {
  i64 u = row_of_entry(indptr, n, m);
  i64 i = thread_number();
  if (i >= m) return;
  i64 v = indices[i];
  if (is_symmetric && v >= u) return;
  unite(i32(u), i32(v), parent);
}

__device__ __forceinline__ bool has_bit(const u32* bits, i64 v) {
  return bits[v >> 5] >> (v & 31) & 1;
}

// Whether the bits low … high are all set. All threads of a block of BLOCK.
__device__ __forceinline__ bool all_set(const u32* bits, i64 low, i64 high) {
  bool is_one_unset = false;
  for (i64 i = (low >> 5) + threadIdx.x; i <= high >> 5; i += BLOCK) {
    u32 unset = ~bits[i];
    if (i == low >> 5) unset &= ALL_LANES << (low & 31);
    if (i == high >> 5) unset &= ALL_LANES >> (31 - (high & 31));
    is_one_unset |= unset != 0;
  }
  return !__syncthreads_or(is_one_unset);
}

// Hook the entries, in rows low … high of the largest tree, that lead out of it.
__device__ __forceinline__ void hook_strays(const i64* indptr, const u32* indices, i64 low,
                                            i64 high, const i64 (&entry)[EACH], i64 end,
                                            const u32* inside, i32* parent) {
  u32 target[EACH], outside = 0;
#pragma unroll
  for (u32 k = 0; k < EACH; ++k) target[k] = entry[k] < end ? indices[entry[k]] : 0;
#pragma unroll
  for (u32 k = 0; k < EACH; ++k)
    if (entry[k] < end && !has_bit(inside, target[k])) outside |= 1u << k;
#pragma unroll
  for (u32 k = 0; k < EACH; ++k)
    if (outside >> k & 1)
      unite(i32(last_start(indptr, low, high, entry[k])), i32(target[k]), parent);
}

// A block a tile of entries: hook those with an end outside the largest tree. Blocks of BLOCK.
extern "C" __global__ void hook_outside(const i64* indptr, const u32* indices, i64 n, i64 m,
                                        i64 is_symmetric, const u32* inside, const u32* settled,
                                        i32* parent) {
  i64 first = i64(blockIdx.x) * TILE, end = min(first + TILE, m), entry[EACH], row[EACH];
  auto [low, high] = rows_of_block(indptr, n, first, end - 1);
  bool is_settled = all_set(settled, low, high);
  if (is_settled && is_symmetric) return;
#pragma unroll
  for (u32 k = 0; k < EACH; ++k) entry[k] = first + k * BLOCK + threadIdx.x;
  if (is_settled) {
    hook_strays(indptr, indices, low, high, entry, end, inside, parent);
    return;
  }
  find_rows(indptr, low, high, entry, row);
  u32 target[EACH], outside = 0;
#pragma unroll
  for (u32 k = 0; k < EACH; ++k) {
    bool is_inside = has_bit(inside, row[k]);
    bool is_looked_at = entry[k] < end && !(is_symmetric && is_inside);
    target[k] = is_looked_at ? indices[entry[k]] : 0;
    if (is_looked_at && !(is_inside && has_bit(inside, target[k]))) outside |= 1u << k;
  }
#pragma unroll
  for (u32 k = 0; k < EACH; ++k)
    if (outside >> k & 1) unite(i32(row[k]), i32(target[k]), parent);
}

// A thread a row: it is a vertex if it has entries, or if another row has the same label. Rows with
// entries speak for themselves, so that few need to be marked by others.
extern "C" __global__ void mark_vertices(const i64* indptr, i64 n, const i32* label,
                                         u8* is_vertex) {
  i64 v = thread_number();
  if (v >= n) return;
  i32 root = label[v];
  if (root != v || indptr[v] < indptr[v + 1]) is_vertex[v] = 1;
  if (root != v && indptr[root] == indptr[root + 1]) is_vertex[root] = 1;
}

// A thread a row.
extern "C" __global__ void leave_out(i64 n, const u8* is_vertex, i64 none, i32* label) {
  i64 v = thread_number();
  if (v < n && !is_vertex[v]) label[v] = i32(none);
}
