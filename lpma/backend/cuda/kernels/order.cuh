// The arguments of a batch, and the device's answer: it decides by itself whether the batch is applied
// as planned.
//
// Idea: the answer is words in the host's memory, written before the slots are moved. So the host does
// its part of the batch, and begins the next one, while the device moves.
//
// The device refuses what needs the host, and leaves the store as it was: a batch with bad rows, one
// that makes the store grow or shrink, one so expensive that merging the whole store is cheaper, and
// windows that do not fit the scratch. The host then continues from the located batch. Until it has,
// the gate is closed: batches launched behind change nothing, and report that they were skipped.
//
// Requires: a report of zeros before the batch; a cooperative launch.
#pragma once
#include "lpma/backend/cuda/kernels/choose.cuh"
#include "lpma/backend/cuda/kernels/move.cuh"

// How a batch ended.
enum Verdict { SKIPPED, REFUSED, APPLIED };
// Words before the report: the ticket once the rows are found good; the ticket once all is said; the
// verdict.
constexpr int ANSWER_HEAD = 3;

// The only argument of apply_batch and decide. FusedPath in fused.py writes it.
struct Order {
  Store store;
  Work work;
  Columns scratch;
  u64 scratch_slots;
  Batch batch;
  Batch given;  // the batch where it is read from first: in the host's memory, or `batch` itself
  Bounds bounds;
  u64* changed;  // for the history; null where none is kept
  u8* inserted;
  i64* answer;  // words of the host's memory
  i64 ticket;   // which no batch before had
  i64* next_report;  // to be cleared for the batch behind this one
  double most_cost, leaf_cost, window_cost;  // see lpma/store/sizing.py
  int direction, checked;
};

// The slots that the store will hold, `before` being what it holds.
__device__ __forceinline__ i64 slots_after(const Work& w, u32 before) {
  return i64(before) + w.report[INSERTED] - w.report[DELETED];
}

// Whether a located batch can be planned: the store keeps its levels, and is not merged.
__device__ __forceinline__ bool stays(const Order& order, u32 before) {
  i64 after = slots_after(order.work, before);
  int m = order.store.m;
  u32 root = bound_of(m, 1);
  return order.leaf_cost * order.work.report[TOUCHED] <= order.most_cost &&
         (after <= i64(before) || after <= order.bounds.most[root]) &&
         (!m || after >= order.bounds.least[root]);
}

// Whether a planned batch can be moved.
__device__ __forceinline__ bool is_worth_it(const Order& order) {
  const i64* report = order.work.report;
  double cost = order.leaf_cost * report[TOUCHED] + order.window_cost * report[HELD_ABOVE];
  return cost <= order.most_cost && report[LARGE_SLOTS] <= order.scratch_slots;
}

// Plan the batch, or leave no trace of it.
__device__ bool plan(const Order& order) {
  add_changes(order.store, order.work, 1);
  grid_sync();
  choose(order.store, order.work, order.bounds);
  grid_sync();
  if (is_worth_it(order)) return true;
  add_changes(order.store, order.work, -1);
  return false;
}

// Tell the host that the rows are good.
__device__ __forceinline__ void tell_good(const Order& order) {
  if (blockIdx.x + 1 == gridDim.x && threadIdx.x == 0) *(volatile i64*)order.answer = order.ticket;
}

// Have the other report be one of zeros for the batch behind this one.
__device__ __forceinline__ void clear_next_report(const Order& order) {
  if (blockIdx.x == 0 && threadIdx.x < REPORT_WORDS) order.next_report[threadIdx.x] = 0;
}

// Tell the host how it ended; by one block, the last, which has the least to do.
__device__ void tell(const Order& order, Verdict verdict) {
  if (blockIdx.x + 1 < gridDim.x) return;
  volatile i64* answer = order.answer;
  for (u32 word = threadIdx.x; word < REPORT_WORDS; word += THREADS)
    answer[ANSWER_HEAD + word] = order.work.report[word];
  if (threadIdx.x == 0) {
    answer[2] = verdict;
    if (verdict == REFUSED) *order.work.gate = 1;
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) answer[1] = order.ticket;
}

static_assert(REPORT_WORDS <= THREADS, "a thread a word");
