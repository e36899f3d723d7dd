// Folding a run: what all operations on one key come to, and how many of them changed nothing.
//
// Source: Definition 2 and store.md. Short runs are folded one operation after the other. A long
// one, a hot key's, would hold up its batch; but what a stretch of operations does to a key is a
// function of a simple form, and two such functions compose to one, so a block folds its parts
// side by side. The form: a present edge of weight w >= least becomes w + sum; anything else
// becomes `reset`, whatever it was. Sums are grouped differently so, and the results must be those
// of the CPU, to the last bit: it is done where no grouping shows, as with whole numbers whose
// sums stay whole. The operations of other runs are read side by side and added one by one.
#pragma once
#include "lpma/backend/cuda/work.cuh"

constexpr int LONG_RUN = 64;  // operations on one key from which a block folds them

struct Effect {
  Weight least, sum;
  i64 time;     // of the last operation that applies to what passes; where `timed`
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

// First f, then g. Weights that pass f and fail g meet the same end as those that fail both: f
// never makes more of an absent edge than of a present one that passes.
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

// The operations of a block's rows that change nothing, by reason; and of falling edges apart, for
// an undirected graph holds each edge both ways and counts it once. In shared memory.
struct Counts {
  u32 of[2 * REASONS];
};

__device__ __forceinline__ void clear_counts(Counts& counts) {
  if (threadIdx.x < 2 * REASONS) counts.of[threadIdx.x] = 0;
  __syncthreads();
}

// When all threads of the block have counted; all call it.
__device__ __forceinline__ void report_counts(const Work& w, const Counts& counts) {
  __syncthreads();
  if (threadIdx.x < 2 * REASONS && counts.of[threadIdx.x])
    add_to(w, UNCHANGED + threadIdx.x, counts.of[threadIdx.x]);
}

// The operations on one key on their way: its state, and where those that change nothing count.
struct Run {
  u32* counts;  // by reason
  bool marker;
  State state;
};

__device__ __forceinline__ Run run_of(Counts& counts, u64 key, State state) {
  return {counts.of + (key_src(key) > key_dst(key) ? REASONS : 0), is_marker(key), state};
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

// Rows lo … hi - 1, by one thread.
template <bool LATE>
__device__ __forceinline__ State fold(const Batch& b, const u32* places, i64 lo, i64 hi, Run run) {
  for (i64 row = lo; row < hi; ++row) apply(run, operation_at<LATE>(b, places[row]));
  return run.state;
}

// Up to THREADS appends and deletions of one edge, to be applied one after the other: a present edge
// of weight w becomes w + sum, or absent where that is below 0; an absent one becomes `reset`. A weight
// of -1 is an absent edge's.
struct InOrder {
  Weight sum[THREADS], reset[THREADS], state[THREADS + 1];  // state: before each, and after the last
};

// What a block folds a long run with, in shared memory: one after the other.
union Folding {
  double size[THREADS];
  Effect part[THREADS];
  InOrder next;
  __device__ Folding() {}
};

constexpr double EXACT = WEIGHT_BYTES == 8 ? 9007199254740992.0 : 16777216.0;  // 2^53, 2^24

// Whether rows lo … hi - 1 may be added to `stored` in any order: whether all are whole numbers, and
// no sum of some of them is too large to be exact. By a block, every thread gets it.
__device__ bool in_any_order(const Batch& b, const u32* places, i64 lo, i64 hi, Weight stored,
                             Folding& folding) {
#if WEIGHT_BYTES
  double size = threadIdx.x ? 0 : stored;
  bool whole = stored == rint(stored);
  for (i64 row = lo + threadIdx.x; row < hi; row += THREADS) {
    if (kind_of(b, places[row]) != APPEND) continue;
    double d = weight_of(b, places[row]);
    whole &= d == rint(d);
    size += fabs(d);
  }
  __syncthreads();  // a former call's readers are done
  folding.size[threadIdx.x] = size;
  for (int by = THREADS / 2; by; by /= 2) {
    __syncthreads();
    if (threadIdx.x < by) folding.size[threadIdx.x] += folding.size[threadIdx.x + by];
  }
  whole = __syncthreads_and(whole) && folding.size[0] <= EXACT;
  __syncthreads();
  return whole;
#else
  __syncthreads();
  return true;
#endif
}

// One after the other. What can be worked out of an operation by itself is, by a thread each; one
// thread adds up; then each thread sees what became of its operation. REQUIRES: an edge's run.
template <bool LATE>
__device__ State fold_in_order(const Batch& b, const u32* places, i64 lo, i64 hi, Run run,
                               Folding& folding) {
  InOrder& next = folding.next;
  u32 t = threadIdx.x;
  if (t == 0) next.state[0] = run.state.present ? run.state.weight : Weight(-1);
  for (i64 first = lo; first < hi; first += THREADS) {
    u32 n = min(i64(THREADS), hi - first);
    Operation mine;
    if (t < n) {
      mine = operation_at<LATE>(b, places[first + t]);
      Weight d = Weight(mine.weight);
      next.sum[t] = mine.kind == APPEND ? d : -infinite();
      next.reset[t] = mine.kind == APPEND && d > 0 ? d : Weight(-1);
    }
    __syncthreads();
    if (t == 0) {
      Weight weight = next.state[0];
#pragma unroll 8
      for (u32 i = 0; i < n; ++i) {
        Weight sum = weight + next.sum[i];
        weight = weight < 0 ? next.reset[i] : sum < 0 ? Weight(-1) : sum;
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
  run.state.time = LATE ? i64(place) : time_of(b, place);
  return run.state;
}

// Side by side: each thread's part becomes an effect; a scan gives the state before each part, from
// which its thread goes through it once more, to count. The last thread ends with the result.
template <bool LATE>
__device__ State fold_in_parts(const Batch& b, const u32* places, i64 lo, i64 hi, Run run,
                               Folding& folding) {
  u32 t = threadIdx.x;
  i64 each = (hi - lo + THREADS - 1) / THREADS;
  i64 first = min(lo + i64(t) * each, hi), last = min(first + each, hi);
  Effect mine = no_effect();
  for (i64 row = first; row < last; ++row)
    mine = compose(mine, effect_of(operation_at<LATE>(b, places[row]), run.marker));
  for (int by = 1; by < THREADS; by *= 2) {
    folding.part[t] = mine;
    __syncthreads();
    if (t >= by) mine = compose(folding.part[t - by], mine);
    __syncthreads();
  }
  folding.part[t] = mine;
  __syncthreads();
  if (t) run.state = apply_effect(folding.part[t - 1], run.state);
  return fold<LATE>(b, places, first, last, run);
}

// Rows lo … hi - 1 by a whole block; its last thread gets the state.
template <bool LATE>
__device__ State fold_by_block(const Batch& b, const u32* places, i64 lo, i64 hi, Run run) {
  __shared__ Folding folding;
  Weight stored = run.state.present ? run.state.weight : Weight(0);
  if (in_any_order(b, places, lo, hi, stored, folding))
    return fold_in_parts<LATE>(b, places, lo, hi, run, folding);
  return fold_in_order<LATE>(b, places, lo, hi, run, folding);
}
