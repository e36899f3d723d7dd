// Scores of owners: shrinking an ego network, and counting the parts that are left.
// listing/__init__.py describes the method, and ego.cuh how an ego network lies in memory.
//
// Instances: small<0>, small<1>, small<2>, large<0>, large<1>, large<2>, huge<0>, huge<1>, huge<2>
#include "algorithms/diversity/listing/shrink.cuh"
#include "lpma/cuda/take.cuh"

constexpr i32 SMALL_WORDS = 2560;  // as in cuda.py

// Add to `score` the number of trees with at least `fewest` vertices. Into `label`, unless it is
// null, goes the root of each vertex in such a tree, and NONE for the others.
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

// Add an owner's score to `score`.
template <int MODEL, class Team>
__device__ void score_owner(Team& team, const Rows& g, const Ego& ego, i64 k, i64 fewest,
                            i32* score, i32* label) {
  clear<MODEL>(team, ego);
  team.sync();
  list_edges<MODEL>(team, g, ego);
  team.sync();
  shrink_and_join<MODEL>(team, ego, k);
  count_trees(team, ego, fewest, score, label);
  team.sync();  // the room may be used again
}

// Owner i's labels begin at label[starts[i]], where labels are wanted. Scores are 0 before.
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

template <int MODEL>
__global__ void __launch_bounds__(128) small(GIVEN, u64* next) {
  __shared__ i32 room[SMALL_WORDS];
  Block<0> team;
  for (i64 i; (i = take_for_block(next)) < number;) one_owner<MODEL>(HERE, team, i, room);
}

// Owner i's room begins at room[rooms[i]].
template <int MODEL>
__global__ void __launch_bounds__(256) large(GIVEN, u64* next, i32* room, const i64* rooms) {
  Block<8> team;
  for (i64 i; (i = take_for_block(next)) < number;)
    one_owner<MODEL>(HERE, team, i, room + rooms[i]);
}

// A cooperative launch: the grid works on one owner after the other, in the same room. flags: three
// zeros.
template <int MODEL>
__global__ void __launch_bounds__(512) huge(GIVEN, u32* flags, i32* room) {
  Grid team = {{flags}};
  for (i64 i = 0; i < number; ++i) one_owner<MODEL>(HERE, team, i, room);
}
