// Listing what a located batch does: its actions, and the leaves that they touch.
//
// Idea: a block takes a contiguous share of the rows and reads it twice, with a barrier over the
// grid in between: the first reading gives the share's sums, which the block publishes. A leaf
// begins at each action whose segment is not that of the action before. So beside its sums a block
// publishes the ranks of its first and its last action: whether the first one begins a leaf shows in
// the last of the blocks before it. Actions and leaves are so listed together, and neither waits for
// the other.
//
// Requires: a cooperative launch with blocks of THREADS threads.
#pragma once
#include "lpma/backend/cuda/kernels/actions.cuh"
#include "lpma/cuda/scan.cuh"

constexpr u32 NO_RANK = ~0u;

// Four counts that are summed at once.
struct Listed {
  u32 actions, inserts, removes, leaves;
};

__device__ __forceinline__ Listed operator+(Listed x, Listed y) {
  return {x.actions + y.actions, x.inserts + y.inserts, x.removes + y.removes,
          x.leaves + y.leaves};
}

__device__ __forceinline__ Listed operator-(Listed x, Listed y) {
  return {x.actions - y.actions, x.inserts - y.inserts, x.removes - y.removes,
          x.leaves - y.leaves};
}

// What `block_exclusive` of scan.cuh needs of a type beside its operators.
__device__ __forceinline__ Listed warp_inclusive(Listed x) {
  return {warp_inclusive(x.actions), warp_inclusive(x.inserts), warp_inclusive(x.removes),
          warp_inclusive(x.leaves)};
}

// What a block tells of its share; the ranks are NO_RANK where it has no action.
struct Summary {
  Listed sum;
  u32 first, last;
};

static_assert(sizeof(Summary) == SUMMARY_WORDS * sizeof(u32), "there is room for it");

// A row's action, and the rank of its segment.
struct Act {
  u8 action;
  u32 rank;
};

__device__ __forceinline__ Act act_of(const Work& w, i64 row, i64 end) {
  u8 action = row < end ? w.action[row] : SKIP;
  return {action, action == SKIP ? NO_RANK : w.rank[row]};
}

__device__ __forceinline__ Listed listed(Act act, u32 before) {
  return {act.action != SKIP, act.action == INSERT, act.action == REMOVE,
          act.action != SKIP && act.rank != before};
}

// The contiguous share of the rows that a block takes.
struct Share {
  i64 lo, hi;
};

// The rows of a block: as few warps a block as give each row a thread.
__device__ __forceinline__ Share row_share(i64 n) {
  i64 each = (n + gridDim.x - 1) / gridDim.x;
  each = (each + 31) & ~31ll;
  i64 lo = min(i64(blockIdx.x) * each, n);
  return {lo, min(lo + each, n)};
}

// Of the threads before this one in the block, what the last one that has a rank has; `carried`
// where none has. `carried` becomes that of the whole block. All threads call it.
__device__ __forceinline__ u32 rank_before(u32 rank, u32& carried) {
  __shared__ u32 last_of[WARPS];
  u32 having = __ballot_sync(ALL_LANES, rank != NO_RANK);
  u32 below = having & ((1u << lane_id()) - 1);
  u32 before = __shfl_sync(ALL_LANES, rank, below ? 31 - __clz(below) : 0);
  u32 last = __shfl_sync(ALL_LANES, rank, having ? 31 - __clz(having) : 0);
  __syncthreads();  // the readers of the call before are done
  if (lane_id() == 0) last_of[warp_id()] = last;
  __syncthreads();
  u32 upto = carried;
  for (u32 warp = 0; warp < WARPS; ++warp) {
    if (warp == warp_id() && !below) before = upto;
    if (last_of[warp] != NO_RANK) upto = last_of[warp];
  }
  carried = upto;
  return before;
}

// Sum up a share, and publish it. A barrier over the grid must follow.
__device__ void publish_share(const Work& w, Share share) {
  __shared__ u32 first;
  Listed sum = {0, 0, 0, 0}, total;
  u32 last = NO_RANK;
  if (threadIdx.x == 0) first = NO_RANK;
  __syncthreads();
  for (i64 tile = share.lo; tile < share.hi; tile += THREADS) {
    Act act = act_of(w, tile + threadIdx.x, share.hi);
    u32 before = rank_before(act.rank, last);
    if (act.action != SKIP && before == NO_RANK) first = act.rank;
    sum = sum + listed(act, before);
  }
  block_exclusive<THREADS>(sum, total);
  if (threadIdx.x == 0) ((Summary*)w.of_block)[blockIdx.x] = {total, first, last};
}

// The sums of the blocks before this one, and of all; `rank`: that of the last action before this
// block's.
__device__ Listed listed_before(const Work& w, Listed& all, u32& rank) {
  __shared__ u32 before_own;
  Listed mine = {0, 0, 0, 0}, every = mine, before;
  u32 last = NO_RANK;
  for (u32 tile = 0; tile < gridDim.x; tile += THREADS) {
    u32 block = tile + threadIdx.x;
    Summary x = {{0, 0, 0, 0}, NO_RANK, NO_RANK};
    if (block < gridDim.x) x = ((const Summary*)w.of_block)[block];
    u32 previous = rank_before(x.last, last);
    if (x.first != NO_RANK && x.first == previous) --x.sum.leaves;
    every = every + x.sum;
    if (block < blockIdx.x) mine = mine + x.sum;
    if (block == blockIdx.x) before_own = previous;
  }
  block_exclusive<THREADS>(mine, before);
  block_exclusive<THREADS>(every, all);
  rank = before_own;
  return before;
}

// List a share's actions and leaves. Follows publish_share and a barrier.
__device__ void list_share(const Work& w, Share share, const u64* keys) {
  Tally tally = {0, 0, 0};
  Listed all, total;
  u32 last;
  Listed before = listed_before(w, all, last);
  for (i64 tile = share.lo; tile < share.hi; tile += THREADS) {
    i64 row = tile + threadIdx.x;
    Act act = act_of(w, row, share.hi);
    Listed own = listed(act, rank_before(act.rank, last));
    Listed at = before + block_exclusive<THREADS>(own, total);
    before = before + total;
    if (!own.actions) continue;
    w.row[at.actions] = row;
    w.inserts[at.actions] = at.inserts;
    w.removes[at.actions] = at.removes;
    add_action(tally, act.action, keys[row]);
    if (!own.leaves) continue;
    w.touched[at.leaves] = act.rank;
    w.begin[at.leaves] = at.actions;
    w.leaf_inserts[at.leaves] = at.inserts;
    w.leaf_removes[at.leaves] = at.removes;
  }
  report_tally(w, tally);
  if (thread_number<THREADS>()) return;
  w.inserts[all.actions] = w.leaf_inserts[all.leaves] = all.inserts;
  w.removes[all.actions] = w.leaf_removes[all.leaves] = all.removes;
  w.begin[all.leaves] = all.actions;
  w.report[ACTIONS] = all.actions;
  w.report[INSERTED] = all.inserts;
  w.report[DELETED] = all.removes;
  w.report[TOUCHED] = all.leaves;
}
