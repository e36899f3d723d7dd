// Shortest paths on a CUDA device: distances, by a near and a far pile, in one cooperative launch.
//
// Source: Davidson, Baxter, Garland and Owens, "Work-efficient parallel GPU methods for
// single-source shortest paths", IPDPS 2014; after Meyer and Sanders, "Δ-stepping: a
// parallelizable shortest path algorithm", Journal of Algorithms 49, 2003.
//
// Idea: a vertex whose distance falls must have its row read again. Reading first the rows of
// vertices that are near saves most of these repetitions. A vertex at the bound or below goes to
// the frontier of the next step, any other to the far pile. When no row is left to read, the bound
// moves to the least distance in the far pile plus delta, and what is then below it is the new
// frontier.
//
// The order in which rows are read decides the work but not the result: distances only fall, each
// is the length of a path, and at the end no edge makes one smaller (see the package). So delta may
// be any number from 0 on. It follows the work. A step whose frontier has fewer items than the grid
// has warps takes as long as one that has as many: where steps were thinner since the last split,
// delta is doubled. Where they had more than WIDE items a warp, most of which would be read again,
// it is halved.
//
// A vertex is in the frontier of a step once: `queued` has the number of the step for which it was
// enqueued last. It is in the far pile once: `is_far`. When its distance falls to the bound or
// below it is enqueued, and stays in the pile as well. Such an entry is found where the pile is
// split: its distance is within the bound that has been. Its row has been read, and it is dropped.
//
// A step (lpma/cuda/steps.cuh) reads the rows of a frontier, or splits the far pile.
//
// Instances: distances<float>, distances<double>, measure<float>, measure<double>
#include "algorithms/shortest_paths/frontier.cuh"

constexpr u64 WIDE = 16;

struct Step {
  u64 items;     // enqueued
  u64 far;       // vertices put on the far pile
  u64 nearness;  // NONE - the least of their distances, or what one of them was
};

struct Marks {
  u32* queued;
  u32* is_far;
};

__device__ __forceinline__ void note_least(u64 least, Step* step) {
  least = warp_min(least);
  if (lane_id() == 0 && least != NONE) atomicMax(&step->nearness, NONE - least);
}

// Read the rows of a frontier. The vertices reached go to `next`, the frontier of step `number`, or
// behind the `far` there are.
template <typename Weight>
__device__ __forceinline__ void relax(const Graph<Weight>& g, const Marks& marks, const u64* queue,
                                      u64 size, u64* next, u32 number, u32* far, u64 bound,
                                      Step* step) {
  u64 least = NONE;
  Gathered near_ones = Gathered::empty<2>(0), far_ones = Gathered::empty<2>(1);
  auto pass_near = [&](bool is_one, u32 v) {
    enqueue_rows(g.indptr, is_one, v, next, &step->items);
  };
  auto pass_far = [&](bool is_one, u32 v) { append_of_lanes(is_one, v, far, &step->far); };
  relaxations(g, queue, size, [&](const Relaxation& r) {
    bool is_less = r.is_one && r.length < r.known &&
                   r.length < atomicMin(g.distance + r.v, r.length);
    if (!__any_sync(ALL_LANES, is_less)) return;
    bool is_near = is_less && r.length <= bound, is_far = is_less && !is_near;
    if (is_far) least = min(least, r.length);
    if (is_near) is_near = atomicExch(marks.queued + r.v, number) != number;
    if (is_far) is_far = !__ldcg(marks.is_far + r.v) && !atomicExch(marks.is_far + r.v, 1);
    near_ones.add(is_near, r.v, pass_near);
    far_ones.add(is_far, r.v, pass_far);
  });
  near_ones.finish(pass_near);
  far_ones.finish(pass_far);
  note_least(least, step);
}

// Move the vertices of the far pile that are at `bound` or below to the frontier.
template <typename Weight>
__device__ __forceinline__ void split(const Graph<Weight>& g, const Marks& marks, const u32* far,
                                      u64 size, u32* rest, u64 before, u64 bound, u64* next,
                                      Step* step) {
  u64 least = NONE;
  for (u64 first = warp_number() * 32; first < size; first += warp_count() * 32) {
    bool has_one = first + lane_id() < size;
    u32 v = has_one ? __ldcg(far + first + lane_id()) : 0;
    u64 distance = has_one ? __ldcg(g.distance + v) : 0;
    bool is_far = has_one && distance > bound;
    if (is_far) least = min(least, distance);
    if (has_one && !is_far) marks.is_far[v] = 0;
    bool is_near = has_one && !is_far && distance > before;
    enqueue_rows(g.indptr, is_near, v, next, &step->items);
    append_of_lanes(is_far, v, rest, &step->far);
  }
  note_least(least, step);
}

// Delta after steps that had so many items together.
__device__ __forceinline__ double adapted(double delta, u64 items, u64 steps) {
  u64 thin = steps * u64(warp_count());
  return items < thin ? 2 * delta : items > WIDE * thin ? delta / 2 : delta;
}

// REQUIRES: queues[2 * capacity], piles[2n], words[2n]. The frontiers of this step and the next are
// in one queue and the other, in turns; so is the far pile before and after it is split.
template <typename Weight>
__global__ void __launch_bounds__(THREADS, 5)
    distances(const i64* indptr, const u32* indices, const Weight* weights, i64 n, i64 source,
              double delta, u64* distance, u64* queues, i64 capacity, u32* piles, u32* words,
              Step* records) {
  Graph<Weight> g = {indptr, indices, weights, distance};
  Marks marks = {words, words + n};
  u64 items = enqueue_alone(indptr, source, queues);
  for (i64 v = thread_number(); v < n; v += thread_count()) {
    distance[v] = v == source ? 0 : INFINITE;
    marks.queued[v] = marks.is_far[v] = 0;
  }
  Steps<Step> steps = {records};
  steps.clear();
  grid_sync();

  u64 far_size = 0, least = NONE, bound = length_of(delta), before = 0;
  u64 read = 0, since = 0;  // items, and the number of the step that followed the last split
  u32 pile = 0;
  for (u32 number = 0;; ++number) {
    Step* step = steps.record();
    u64* queue = queues + (number & 1) * capacity;
    u64* next = queues + (~number & 1) * capacity;
    u32* far = piles + pile * n;
    bool is_split = items == 0;
    if (is_split) {
      delta = adapted(delta, read, number - since);
      read = 0;
      since = number + 1;
      before = bound;
      bound = length_of(number_of(least) + delta);
      split(g, marks, far, far_size, piles + (pile ^ 1) * n, before, bound, next, step);
      pile ^= 1;
      far_size = 0;
      least = NONE;
    } else {
      read += items;
      relax(g, marks, queue, items, next, number + 1, far + far_size, bound, step);
    }
    Step done = steps.end();
    items = done.items;
    far_size += done.far;
    least = min(least, NONE - done.nearness);
    if (items == 0 && far_size == 0) return;
  }
}

// What weights are: refused[0] becomes the place of the first that is negative, infinite or not a
// number, if one is and comes before what it was; to sum[0] is added their sum.
template <typename Weight>
__global__ void measure(const Weight* weights, i64 m, u64* refused, double* sum) {
  u64 first = NONE;
  double own = 0;
  for (i64 e = thread_number(); e < m; e += thread_count()) {
    double weight = weights[e];
    own += weight;
    if (!(weight >= 0 && weight < number_of(INFINITE))) first = min(first, u64(e));
  }
  own = warp_sum(own);
  if (lane_id() == 0) atomicAdd(sum, own);
  if (first != NONE) atomicMin(refused, first);
}
