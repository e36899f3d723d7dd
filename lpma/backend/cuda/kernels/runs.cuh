// Folding a run: the outcome of all operations on one key, and how many of them change nothing.
//
// Source: the paper, Definition 2. Short runs are folded one operation after the other. A long run,
// of a hot key, would hold up its batch, so a whole block folds it.
//
// Idea: what a stretch of operations does to a key is a function of a simple form: a present edge
// of weight w >= least becomes w + sum, and anything else becomes `reset`. Two such functions
// compose to one, so threads fold parts of the run side by side and a scan composes the parts.
//
// This groups sums differently from the CPU, and results must be equal to the last bit. So it is
// done only if all weights are whole numbers and all sums are exact. Otherwise threads read the
// operations side by side, and one of them adds them up in order.
#pragma once
#include "lpma/backend/cuda/kernels/work.cuh"
#include "lpma/cuda/scan.cuh"

constexpr int LONG_RUN = 64;  // operations; a block folds a run of more

struct Effect {
  Weight least, sum;
  i64 time;     // where `timed`: of the last operation that applies to an edge that stays present
  bool timed;
  State reset;  // also what an absent edge becomes
};

__device__ __forceinline__ Weight infinite() {
  return Weight(__longlong_as_double(0x7ff0000000000000ll));
}

__device__ __forceinline__ Effect no_effect() {
  return {Weight(-1), Weight(0), 0, false, {false, Weight(0), 0}};
}

__device__ __forceinline__ Effect effect_of(const Operation& o, bool marker) {
  State absent = {false, Weight(0), 0};
  Effect e = {infinite(), Weight(0), o.time, true, apply_operation(o, marker, absent)};
  if (o.kind != APPEND) return e;
#if WEIGHT_BYTES
  Weight d = Weight(o.weight);
  e.least = -d;
  e.sum = d;
#else
  if (o.weight == 0) return no_effect();
#endif
  return e;
}

__device__ __forceinline__ State apply_effect(const Effect& e, State before) {
  if (!before.present || before.weight < e.least) return e.reset;
  return {true, before.weight + e.sum, e.timed ? e.time : before.time};
}

// First f, then g. A weight that f keeps present and g does not meets the same end as one that both
// do not: f never makes more of an absent edge than of a present one that it keeps.
__device__ __forceinline__ Effect compose(const Effect& f, const Effect& g) {
  return {max(f.least, g.least - f.sum), f.sum + g.sum, g.timed ? g.time : f.time,
          f.timed || g.timed, apply_effect(g, f.reset)};
}

// The first row after `lo` with another key.
__device__ __forceinline__ i64 run_end(const u64* keys, i64 lo, i64 n) {
  u64 key = keys[lo];
  i64 low = lo + 1, high = n;
  for (i64 step = 1; low + step < n && keys[low + step] == key; step *= 2) low += step;
  return first_false(low, high, [&](i64 row) { return keys[row] == key; });
}

// The operations that change nothing among a block's rows, by reason, and the edges that expire, in
// shared memory. The second half counts edges from a larger to a smaller vertex apart, because an
// undirected graph holds each edge both ways and counts it once.
struct Counts {
  u32 of[2 * REASONS];
};

__device__ __forceinline__ void clear_counts(Counts& counts) {
  if (threadIdx.x < 2 * REASONS) counts.of[threadIdx.x] = 0;
  __syncthreads();
}

// Add the counts to the report. The whole block calls it, after counting.
__device__ __forceinline__ void report_counts(const Work& w, const Counts& counts) {
  __syncthreads();
  if (threadIdx.x < 2 * REASONS && counts.of[threadIdx.x])
    add_to(w, UNCHANGED + threadIdx.x, counts.of[threadIdx.x]);
}

// A key while its operations are applied: its state, and where operations that change nothing
// count, and an expiry.
struct Run {
  u32* counts;  // by reason
  bool marker;
  State state;
  i64 stored;  // the time that STORED stands for
};

__device__ __forceinline__ Run run_of(Counts& counts, u64 key, State state, i64 stored) {
  return {counts.of + (key_src(key) > key_dst(key) ? REASONS : 0), is_marker(key), state, stored};
}

__device__ __forceinline__ void count(Run& run, const Operation& o, State before, State after) {
  int why = why_unchanged(o, before, after);
  if (why != CHANGED) atomicAdd(&run.counts[why], 1u);
}

__device__ __forceinline__ void apply(Run& run, const Operation& o) {
  State after = apply_operation(o, run.marker, run.state);
  count(run, o, run.state, after);
  run.state = after;
}

// Let the edge go if it is older than the operation at `place` says. This reads times: a batch that
// lets edges expire is located when all of it has arrived.
__device__ __forceinline__ void expire(const Batch& b, u32 place, Run& run) {
  i64 time = run.state.time;
  if (run.state.present) time = time == STORED ? run.stored : time_of(b, u32(time));
  if (!run.state.present || time >= time_of(b, place)) return;
  run.state.present = false;
  atomicAdd(&run.counts[EXPIRED], 1u);
}

// Fold rows lo … hi - 1, by one thread.
__device__ __forceinline__ State fold(const Batch& b, const u32* places, i64 lo, i64 hi, Run run) {
  for (i64 row = lo; row < hi; ++row) {
    u32 place = places[row];
    if (kind_of(b, place) == EXPIRE)
      expire(b, place, run);
    else
      apply(run, operation_at<true>(b, place));
  }
  return run.state;
}

// Up to THREADS operations on one edge, to be applied in order: a present edge of weight w becomes
// w + sum, or absent where that is below 0; an absent one becomes `reset`, as does any where sum is
// infinite. The weight -1 stands for an absent edge.
struct InOrder {
  Weight sum[THREADS], reset[THREADS], state[THREADS + 1];  // before each, and after the last
};

// The shared memory with which a block folds a long run; the parts are used one after the other.
union Folding {
  Effect part[THREADS];
  InOrder next;
  __device__ Folding() {}
};

constexpr double EXACT = WEIGHT_BYTES == 8 ? 9007199254740992.0 : 16777216.0;  // 2^53, 2^24

// Whether rows lo … hi - 1 may be added to `stored` in any order: whether all are whole numbers and
// no sum of some of them is too large to be exact. Called by a block; every thread gets the answer.
__device__ bool in_any_order(const Batch& b, const u32* places, i64 lo, i64 hi, Weight stored) {
  if (!WEIGHT_BYTES) {
    __syncthreads();
    return true;
  }
  double size = threadIdx.x ? 0 : stored;
  bool whole = stored == rint(stored);
  for (i64 row = lo + threadIdx.x; row < hi; row += THREADS) {
    if (!is_weighted(kind_of(b, places[row]))) continue;
    double d = weight_of(b, places[row]);
    whole &= d == rint(d);
    size += fabs(d);
  }
  return __syncthreads_and(whole) && block_sum<THREADS>(size) <= EXACT;
}

// Fold in order. Each thread prepares one operation, one thread adds them up, and then each thread
// sees what its operation did. REQUIRES: the run of an edge, not of a marker.
__device__ State fold_in_order(const Batch& b, const u32* places, i64 lo, i64 hi, Run run,
                               Folding& folding) {
  InOrder& next = folding.next;
  u32 t = threadIdx.x;
  if (t == 0) next.state[0] = run.state.present ? run.state.weight : Weight(-1);
  for (i64 first = lo; first < hi; first += THREADS) {
    u32 n = min(i64(THREADS), hi - first);
    Operation mine;
    if (t < n) {
      mine = operation_at<true>(b, places[first + t]);
      Weight d = Weight(mine.weight);
      next.sum[t] = mine.kind == APPEND ? d : -infinite();
      next.reset[t] = is_weighted(mine.kind) && d > 0 ? d : Weight(-1);
    }
    __syncthreads();
    if (t == 0) {
      Weight weight = next.state[0];
#pragma unroll 8
      for (u32 i = 0; i < n; ++i) {
        Weight sum = weight + next.sum[i];
        bool resets = weight < 0 || next.sum[i] == -infinite();
        weight = resets ? next.reset[i] : sum < 0 ? Weight(-1) : sum;
        next.state[i + 1] = weight;
      }
    }
    __syncthreads();
    if (t < n) {
      Weight before = next.state[t], after = next.state[t + 1];
      count(run, mine, {before >= 0, before, 0}, {after >= 0, after, 0});
    }
    Weight last = next.state[n];
    __syncthreads();
    if (t == 0) next.state[0] = last;
    run.state = {last >= 0, last, 0};
  }
  u32 place = places[hi - 1];
  run.state.time = place;
  return run.state;
}

// Fold side by side. Each thread composes its part of the run to one effect; a scan of the effects
// gives the state before each part, from which its thread goes through the part once more to count.
// The last thread ends with the result.
__device__ State fold_in_parts(const Batch& b, const u32* places, i64 lo, i64 hi, Run run,
                               Folding& folding) {
  u32 t = threadIdx.x;
  i64 each = (hi - lo + THREADS - 1) / THREADS;
  i64 first = min(lo + i64(t) * each, hi), last = min(first + each, hi);
  Effect mine = no_effect();
  for (i64 row = first; row < last; ++row)
    mine = compose(mine, effect_of(operation_at<true>(b, places[row]), run.marker));
  for (int by = 1; by < THREADS; by *= 2) {
    folding.part[t] = mine;
    __syncthreads();
    if (t >= by) mine = compose(folding.part[t - by], mine);
    __syncthreads();
  }
  folding.part[t] = mine;
  __syncthreads();
  if (t) run.state = apply_effect(folding.part[t - 1], run.state);
  return fold(b, places, first, last, run);
}

// Fold rows lo … hi - 1, none of which lets its edge expire, by a whole block; its last thread gets
// the state.
__device__ State fold_appends(const Batch& b, const u32* places, i64 lo, i64 hi, Run run) {
  __shared__ Folding folding;
  Weight stored = run.state.present ? run.state.weight : Weight(0);
  if (in_any_order(b, places, lo, hi, stored))
    return fold_in_parts(b, places, lo, hi, run, folding);
  return fold_in_order(b, places, lo, hi, run, folding);
}

// The first row of lo … hi - 1 that lets its edge expire, hi if none does. Called by a block.
__device__ i64 first_expiry(const Batch& b, const u32* places, i64 lo, i64 hi) {
  if (!b.kind && b.one_kind != EXPIRE) return hi;
  __shared__ u32 first;
  if (threadIdx.x == 0) first = u32(hi - lo);
  __syncthreads();
  for (i64 row = lo + threadIdx.x; row < hi; row += THREADS)
    if (kind_of(b, places[row]) == EXPIRE) {
      atomicMin(&first, u32(row - lo));
      break;
    }
  __syncthreads();
  i64 found = lo + first;
  __syncthreads();
  return found;
}

// Fold rows lo … hi - 1 by a whole block; its last thread gets the state. From the first expiry on,
// which mostly is the last row, that thread goes on alone.
__device__ State fold_by_block(const Batch& b, const u32* places, i64 lo, i64 hi, Run run) {
  i64 first = first_expiry(b, places, lo, hi);
  if (first > lo) run.state = fold_appends(b, places, lo, first, run);
  return threadIdx.x == THREADS - 1 ? fold(b, places, first, hi, run) : run.state;
}
