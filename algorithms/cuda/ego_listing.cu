// Scores of owners: listing the edges of an ego network, shrinking it, and counting what is left
// apart. See algorithms/ego/listing.py for the method. A Team of threads works on an owner: a block,
// of which many work side by side, or for the largest all blocks of the device.
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
#include "grid.cuh"
#include "search.cuh"

constexpr i32 SMALL_WORDS = 2560;  // ego_listing.py
constexpr u32 TILE = 8;            // lanes that share a row
constexpr i32 AT_ONCE = 4;         // words of a row
constexpr i32 NONE = -1, GOING = -2;
enum Model { COMPONENT, CORE, TRUSS };

struct Block {
  __device__ i32 thread() const { return threadIdx.x; }
  __device__ i32 threads() const { return blockDim.x; }
  __device__ void sync() { __syncthreads(); }
  __device__ bool any(bool mine) { return __syncthreads_or(mine); }
};

struct Grid {
  u32* flags;  // [3], 0 at first: of call c it is c % 3, cleared a call before
  u32 call;

  __device__ i32 thread() const { return i32(thread_number()); }
  __device__ i32 threads() const { return i32(gridDim.x * blockDim.x); }
  __device__ void sync() { grid_sync(); }
  __device__ bool any(bool mine) {
    volatile u32* flag = flags;
    bool ours = __syncthreads_or(mine);
    if (threadIdx.x == 0 && ours) flag[call % 3] = 1;
    if (thread_number() == 0) flag[(call + 1) % 3] = 0;  // all have read what call - 2 left there
    grid_sync();
    return flag[call++ % 3];
  }
};

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

template <int MODEL, class Team>
__device__ __forceinline__ void clear(const Team& team, const Ego& ego) {
  for (i32 x = team.thread(); x < ego.d; x += team.threads()) {
    ego.root[x] = x;
    ego.count[x] = 0;
  }
  if (MODEL != COMPONENT)
    for (i64 i = team.thread(); i < i64(ego.d) * ego.words; i += team.threads()) ego.bits[i] = 0;
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
template <int MODEL, class Team>
__device__ __forceinline__ void list_edges(const Team& team, const Rows& g, const Ego& ego) {
  for (i32 x = team.thread() / TILE; x < ego.d; x += team.threads() / TILE) {
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
template <class Team, class Wanted, class Visit>
__device__ __forceinline__ void each_edge(const Team& team, const Ego& ego, bool is_lower,
                                          Wanted wanted, Visit visit) {
  i32 lanes = ego.words >= 32 ? 32 : TILE;
  for (i32 x = team.thread() / lanes; x < ego.d; x += team.threads() / lanes) {
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
template <class Team>
__device__ void shrink_to_core(Team& team, const Ego& ego, i64 k) {
  for (;;) {
    bool any = false;
    for (i32 x = team.thread(); x < ego.d; x += team.threads()) {
      if (ego.root[x] == GOING)
        ego.root[x] = NONE;
      else if (ego.root[x] != NONE && ego.count[x] < k) {
        ego.root[x] = GOING;
        any = true;
      }
    }
    if (!team.any(any)) return;
    each_edge(team, ego, false, [&](i32 x) { return ego.root[x] == GOING; },
              [&](i32, i32 y) { atomicSub(&ego.count[y], 1); });
    team.sync();
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
template <class Team>
__device__ void shrink_to_truss(Team& team, const Ego& ego, i64 enough) {
  volatile i32* round_of = ego.count;
  for (i32 round = 0;; ++round) {
    bool any = false;
    each_edge(team, ego, round == 0, [&](i32 x) { return round_of[x] >= round; },
              [&](i32 x, i32 y) {
                if (have_common(ego, x, y, enough)) return;
                part(ego, x, y);
                round_of[x] = round + 1;
                round_of[y] = round + 1;
                any = true;
              });
    if (!team.any(any)) return;
  }
}

// Add to `score` how many trees have at least `fewest` vertices; into `label`, unless it is null,
// goes for each vertex of such a tree its root, and NONE for the others.
template <class Team>
__device__ void count_trees(Team& team, const Ego& ego, i64 fewest, i32* score, i32* label) {
  for (i32 x = team.thread(); x < ego.d; x += team.threads()) ego.count[x] = 0;
  team.sync();
  for (i32 x = team.thread(); x < ego.d; x += team.threads())
    if (ego.root[x] != NONE) atomicAdd(&ego.count[root_of(x, ego.root)], 1);
  team.sync();
  u32 trees = 0;
  for (i32 x = team.thread(); x < ego.d; x += team.threads()) {
    i32 root = ego.root[x] != NONE ? root_of(x, ego.root) : NONE;
    if (root != NONE && ego.count[root] < fewest) root = NONE;
    trees += root == x;
    if (label) label[x] = root;
  }
  __syncwarp();
  trees = warp_sum(trees);
  if (lane_id() == 0 && trees) atomicAdd(score, i32(trees));
}

// Add to `score` the owner's.
template <int MODEL, class Team>
__device__ void score_owner(Team& team, const Rows& g, const Ego& ego, i64 k, i64 fewest,
                            i32* score, i32* label) {
  clear<MODEL>(team, ego);
  team.sync();
  list_edges<MODEL>(team, g, ego);
  team.sync();
  if (MODEL == CORE) shrink_to_core(team, ego, k);
  if (MODEL == TRUSS && k > 2) shrink_to_truss(team, ego, k - 2);
  if (MODEL != COMPONENT) {
    each_edge(team, ego, true, [&](i32 x) { return MODEL == TRUSS || ego.root[x] != NONE; },
              [&](i32 x, i32 y) {
                if (MODEL == TRUSS || ego.root[y] != NONE) unite(x, y, ego.root);
              });
    team.sync();
  }
  count_trees(team, ego, fewest, score, label);
  team.sync();  // the room is free
}

// Owner i's label starts at label[starts[i]], if there are labels at all. Scores are 0 before.
#define GIVEN                                                                             \
  const i64 *slots_indptr, const u32 *slots, const i64 *lower_indptr, const u32 *lower,   \
      const i64 *owners, i64 number, i64 k, i64 fewest, i32 *scores, const i64 *starts,   \
      i64 is_labelled, i32 *label
#define HERE                                                                          \
  slots_indptr, slots, lower_indptr, lower, owners, number, k, fewest, scores, starts, \
      is_labelled, label

template <int MODEL, class Team>
__device__ __forceinline__ void one_owner(GIVEN, Team& team, i64 i, i32* room) {
  Rows g = {slots_indptr, slots, lower_indptr, lower};
  i64 first = slots_indptr[owners[i]];
  i32 d = i32(slots_indptr[owners[i] + 1] - first);
  Ego ego = {slots + first, d, (d + 31) / 32, room, room + d, (u32*)(room + 2 * i64(d))};
  i32* labels = is_labelled ? label + starts[i] : nullptr;
  score_owner<MODEL>(team, g, ego, k, fewest, scores + i, labels);
}

// Which owner a block takes next; `number` or more when there is none. All its threads call it.
__device__ __forceinline__ i64 take(u64* next) {
  __shared__ i64 taken;
  __syncthreads();  // the last one was read
  if (threadIdx.x == 0) taken = i64(atomicAdd(next, 1ull));
  __syncthreads();
  return taken;
}

template <int MODEL>
__global__ void __launch_bounds__(128) small(GIVEN, u64* next) {
  __shared__ i32 room[SMALL_WORDS];
  Block team;
  for (i64 i = take(next); i < number; i = take(next)) one_owner<MODEL>(HERE, team, i, room);
}

// Owner i's room starts at room[rooms[i]].
template <int MODEL>
__global__ void __launch_bounds__(512) large(GIVEN, u64* next, i32* room, const i64* rooms) {
  Block team;
  for (i64 i = take(next); i < number; i = take(next))
    one_owner<MODEL>(HERE, team, i, room + rooms[i]);
}

// A cooperative launch. Owners are worked on one after the other, in the same room.
template <int MODEL>
__global__ void __launch_bounds__(512) huge(GIVEN, u32* flags, i32* room) {
  Grid team = {flags, 0};
  for (i64 i = 0; i < number; ++i) one_owner<MODEL>(HERE, team, i, room);
}
