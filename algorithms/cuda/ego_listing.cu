// Scores of owners, a block each: listing the edges of an ego network, shrinking it, and counting
// what is left apart. See algorithms/ego/listing.py for the method.
//
// An owner's vertices are the places x of its row, 0 … d - 1. Its room holds
//
//   root[d]    a forest over them (forest.cuh); NONE for a vertex that is peeled, GOING in between
//   count[d]   core: degrees; truss: the round in which a vertex's edges are to be looked at; at
//              the end the sizes of trees
//   bits[d, w] core and truss: bit y of row x says whether they are joined, w = ceil(d / 32) words
//
// and lies in shared memory where it is small. What happens within a round only takes away: a
// thread that reads an edge or a degree before another takes from it errs on the side of leaving
// it, and what was taken from is looked at again in the round after. A round that takes nothing
// has seen the final state.
#include "forest.cuh"
#include "search.cuh"

constexpr i32 SMALL_WORDS = 2560;  // ego_listing.py
constexpr u32 TILE = 8;            // lanes that share a row
constexpr i32 AT_ONCE = 4;         // words of a row
constexpr i32 NONE = -1, GOING = -2;
enum Model { COMPONENT, CORE, TRUSS };

struct Rows {
  const i64* slots_indptr;
  const u32* slots;
  const i64* lower_indptr;
  const u32* lower;
};

struct Ego {
  const u32* row;  // ranks, rising
  i32 d, words;
  i32* root;
  i32* count;
  u32* bits;

  __device__ u32* bits_of(i32 x) const { return bits + i64(x) * words; }
};

__device__ __forceinline__ void join(const Ego& ego, i32 x, i32 y) {
  atomicOr(ego.bits_of(x) + (y >> 5), 1u << (y & 31));
  atomicOr(ego.bits_of(y) + (x >> 5), 1u << (x & 31));
}

__device__ __forceinline__ void part(const Ego& ego, i32 x, i32 y) {
  atomicAnd(ego.bits_of(x) + (y >> 5), ~(1u << (y & 31)));
  atomicAnd(ego.bits_of(y) + (x >> 5), ~(1u << (x & 31)));
}

template <int MODEL>
__device__ __forceinline__ void clear(const Ego& ego) {
  for (i32 x = threadIdx.x; x < ego.d; x += blockDim.x) {
    ego.root[x] = x;
    ego.count[x] = 0;
  }
  if (MODEL != COMPONENT)
    for (i64 i = threadIdx.x; i < i64(ego.d) * ego.words; i += blockDim.x) ego.bits[i] = 0;
}

// An edge of the ego network, y < x.
template <int MODEL>
__device__ __forceinline__ void found(const Ego& ego, i32 x, i32 y) {
  if (MODEL == COMPONENT) {
    unite(x, y, ego.root);
    return;
  }
  join(ego, x, y);
  if (MODEL == CORE) {
    atomicAdd(&ego.count[x], 1);
    atomicAdd(&ego.count[y], 1);
  }
}

// Every edge once: what a vertex's lower row has in common with the owner's row before it. The
// longer of the two is searched for the entries of the shorter, each lane from where it last was.
template <int MODEL>
__device__ __forceinline__ void list_edges(const Rows& g, const Ego& ego) {
  for (i32 x = threadIdx.x / TILE; x < ego.d; x += blockDim.x / TILE) {
    u32 v = ego.row[x];
    const u32* lower = g.lower + g.lower_indptr[v];
    i64 length = g.lower_indptr[v + 1] - g.lower_indptr[v], at = 0;
    if (length <= x) {
      for (i64 i = threadIdx.x % TILE; i < length && at < x; i += TILE) {
        at = lower_bound(ego.row, at, x, lower[i]);
        if (at < x && ego.row[at] == lower[i]) found<MODEL>(ego, x, i32(at));
      }
    } else {
      for (i32 y = threadIdx.x % TILE; y < x && at < length; y += TILE) {
        at = lower_bound(lower, at, length, ego.row[y]);
        if (at < length && lower[at] == ego.row[y]) found<MODEL>(ego, x, y);
      }
    }
  }
}

// visit(x, y) for the bits y of the rows x that are `wanted`, if `is_lower` those before x; TILE
// lanes a row, or a warp a long one.
template <class Wanted, class Visit>
__device__ __forceinline__ void each_edge(const Ego& ego, bool is_lower, Wanted wanted,
                                          Visit visit) {
  i32 lanes = ego.words >= 32 ? 32 : TILE;
  for (i32 x = threadIdx.x / lanes; x < ego.d; x += blockDim.x / lanes) {
    if (!wanted(x)) continue;
    i32 words = is_lower ? (x >> 5) + 1 : ego.words;
    const u32* bits = ego.bits_of(x);
    for (i32 start = threadIdx.x % lanes; start < words; start += AT_ONCE * lanes) {
      u32 held[AT_ONCE];  // read together: a long row is mostly waiting for the memory
#pragma unroll
      for (i32 j = 0; j < AT_ONCE; ++j) {
        i32 w = start + j * lanes;
        held[j] = w < words ? bits[w] : 0;
        if (is_lower && w == x >> 5) held[j] &= (1u << (x & 31)) - 1;
      }
#pragma unroll
      for (i32 j = 0; j < AT_ONCE; ++j)
        for (u32 rest = held[j]; rest; rest &= rest - 1)
          visit(x, 32 * (start + j * lanes) + __ffs(rest) - 1);
    }
  }
}

// Peel vertices of a degree below k; their roots become NONE.
__device__ void shrink_to_core(const Ego& ego, i64 k) {
  for (;;) {
    bool any = false;
    for (i32 x = threadIdx.x; x < ego.d; x += blockDim.x) {
      if (ego.root[x] == GOING)
        ego.root[x] = NONE;
      else if (ego.root[x] != NONE && ego.count[x] < k) {
        ego.root[x] = GOING;
        any = true;
      }
    }
    if (!__syncthreads_or(any)) return;
    each_edge(ego, false, [&](i32 x) { return ego.root[x] == GOING; },
              [&](i32, i32 y) { atomicSub(&ego.count[y], 1); });
    __syncthreads();
  }
}

// Whether x and y have at least so many common neighbours.
__device__ __forceinline__ bool have_common(const Ego& ego, i32 x, i32 y, i64 enough) {
  const u32 *of_x = ego.bits_of(x), *of_y = ego.bits_of(y);
  i32 common = 0;
  for (i32 start = 0; start < ego.words; start += AT_ONCE) {
    u32 held[AT_ONCE];
#pragma unroll
    for (i32 j = 0; j < AT_ONCE; ++j) held[j] = start + j < ego.words ? of_x[start + j] : 0;
#pragma unroll
    for (i32 j = 0; j < AT_ONCE; ++j)
      if (held[j]) common += __popc(held[j] & of_y[start + j]);
    if (common >= enough) return true;
  }
  return false;
}

// Take out edges in fewer than `enough` triangles, 1 or more. An edge that is in too few has an end
// whose count is this round's or more; in the first round all have.
__device__ void shrink_to_truss(const Ego& ego, i64 enough) {
  volatile i32* round_of = ego.count;
  for (i32 round = 0;; ++round) {
    bool any = false;
    each_edge(ego, round == 0, [&](i32 x) { return round_of[x] >= round; },
              [&](i32 x, i32 y) {
                if (have_common(ego, x, y, enough)) return;
                part(ego, x, y);
                round_of[x] = round_of[y] = round + 1;
                any = true;
              });
    if (!__syncthreads_or(any)) return;
  }
}

// How many trees have at least `fewest` vertices; in `label`, unless it is null, the root of such a
// tree for each vertex of it, and NONE for the others.
__device__ i32 count_trees(const Ego& ego, i64 fewest, i32* label) {
  i32 trees = 0;
  for (i32 x = threadIdx.x; x < ego.d; x += blockDim.x) ego.count[x] = 0;
  __syncthreads();
  for (i32 x = threadIdx.x; x < ego.d; x += blockDim.x)
    if (ego.root[x] != NONE) atomicAdd(&ego.count[root_of(x, ego.root)], 1);
  __syncthreads();
  for (i32 start = 0; start < ego.d; start += blockDim.x) {
    i32 x = start + threadIdx.x;
    i32 root = x < ego.d && ego.root[x] != NONE ? root_of(x, ego.root) : NONE;
    if (root != NONE && ego.count[root] < fewest) root = NONE;
    trees += __syncthreads_count(root != NONE && root == x);
    if (label && x < ego.d) label[x] = root;
  }
  return trees;
}

// All threads return the score.
template <int MODEL>
__device__ i32 score(const Rows& g, const Ego& ego, i64 k, i64 fewest, i32* label) {
  clear<MODEL>(ego);
  __syncthreads();
  list_edges<MODEL>(g, ego);
  __syncthreads();
  if (MODEL == CORE) shrink_to_core(ego, k);
  if (MODEL == TRUSS && k > 2) shrink_to_truss(ego, k - 2);
  if (MODEL != COMPONENT) {
    each_edge(ego, true, [&](i32 x) { return MODEL == TRUSS || ego.root[x] != NONE; },
              [&](i32 x, i32 y) {
                if (MODEL == TRUSS || ego.root[y] != NONE) unite(x, y, ego.root);
              });
    __syncthreads();
  }
  return count_trees(ego, fewest, label);
}

// Blocks take owners as they come free. Owner i's label starts at label[starts[i]], if there are
// labels at all, and its room, if that is not in shared memory, at room[room_starts[i]].
#define GIVEN                                                                                 \
  const i64 *slots_indptr, const u32 *slots, const i64 *lower_indptr, const u32 *lower,       \
      const i64 *owners, i64 number, i64 k, i64 fewest, u64 *next, i32 *scores,               \
      const i64 *starts, i64 is_labelled, i32 *label

template <int MODEL>
__device__ __forceinline__ void each_owner(GIVEN, i32* shared, i32* room, const i64* room_starts) {
  __shared__ i64 taken;
  Rows g = {slots_indptr, slots, lower_indptr, lower};
  for (;;) {
    __syncthreads();  // the last owner is done with, and `taken` was read
    if (threadIdx.x == 0) taken = i64(atomicAdd(next, 1ull));
    __syncthreads();
    i64 i = taken;
    if (i >= number) return;
    i64 first = slots_indptr[owners[i]];
    i32 d = i32(slots_indptr[owners[i] + 1] - first);
    i32* mine = shared ? shared : room + room_starts[i];
    Ego ego = {slots + first, d, (d + 31) / 32, mine, mine + d, (u32*)(mine + 2 * i64(d))};
    i32 found = score<MODEL>(g, ego, k, fewest, is_labelled ? label + starts[i] : nullptr);
    if (threadIdx.x == 0) scores[i] = found;
  }
}

#define HERE                                                                                   \
  slots_indptr, slots, lower_indptr, lower, owners, number, k, fewest, next, scores, starts,   \
      is_labelled, label

template <int MODEL>
__global__ void __launch_bounds__(128) small(GIVEN) {
  __shared__ i32 shared[SMALL_WORDS];
  each_owner<MODEL>(HERE, shared, nullptr, nullptr);
}

template <int MODEL>
__global__ void __launch_bounds__(1024, 2) large(GIVEN, i32* room, const i64* room_starts) {
  each_owner<MODEL>(HERE, nullptr, room, room_starts);
}
