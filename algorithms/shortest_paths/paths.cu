// Shortest paths on a CUDA device: distances, by a near and a far pile, in one cooperative launch;
// and the vertex before each on a path in another.
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
// A step (lpma/cuda/steps.cuh) reads the rows of a frontier, or splits the far pile. The frontier is a
// queue of rows in pieces, whose entries are dealt to lanes (lpma/cuda/work_queue.cuh). What a warp
// finds it gathers in shared memory, and passes it on by 32: else every warp would add one or two at
// a time to the same counter.
//
// Encoding: lengths are the bits of float64 numbers that are not negative and not NaN. As unsigned
// integers they have the order of the numbers, so that atomicMin on them is the numbers' minimum.
//
// Instances: distances<float>, distances<double>, measure<float>, measure<double>, tree<float>,
//   tree<double>
#include "lpma/cuda/steps.cuh"
#include "lpma/cuda/work_queue.cuh"

constexpr u32 THREADS = 256;  // of a block: launch.BLOCK
constexpr u64 INFINITE = 0x7FF0000000000000;
constexpr u64 NONE = ~0ull;

__device__ __forceinline__ double number_of(u64 length) {
  return __longlong_as_double(i64(length));
}

__device__ __forceinline__ u64 length_of(double number) {
  return u64(__double_as_longlong(number));
}

template <typename Weight>
struct Graph {
  const i64* indptr;
  const u32* indices;
  const Weight* weights;
  u64* distance;  // the least length of a path found so far
};

// An edge from a vertex of the frontier.
struct Relaxation {
  bool is_one;  // false: the lane has no edge
  u32 u, v;
  u64 length;  // of the path through u
  u64 known;   // the distance of v, or what it was a moment ago
};

// Vertices that a warp has found, to be passed on by 32. Of two slots a lane, the first 32 hold
// what is not passed on yet; `count`, how many they are, is the same in all lanes.
struct Gathered {
  u32* slots;
  u32 count;

  // A place for one kind of vertices, number `kind` below KINDS, of this warp.
  template <u32 KINDS>
  static __device__ __forceinline__ Gathered empty(u32 kind) {
    __shared__ u32 slots[KINDS][THREADS / 32][64];
    return {slots[kind][warp_id()], 0};
  }

  // Add the lanes' vertices v with `is_new`, and call pass(is_one, v) once there are 32. For one
  // whole warp, as is `pass`.
  template <typename Pass>
  __device__ __forceinline__ void add(bool is_new, u32 v, Pass pass) {
    u32 lanes = __ballot_sync(ALL_LANES, is_new);
    if (!lanes) return;
    if (is_new) slots[count + lanes_before(lanes)] = v;
    count += __popc(lanes);
    __syncwarp();
    if (count < 32) return;
    u32 first = slots[lane_id()], second = slots[32 + lane_id()];
    __syncwarp();
    slots[lane_id()] = second;
    count -= 32;
    __syncwarp();
    pass(true, first);
  }

  // Pass on what is left.
  template <typename Pass>
  __device__ __forceinline__ void finish(Pass pass) {
    if (count) pass(lane_id() < count, lane_id() < count ? slots[lane_id()] : 0);
    count = 0;
    __syncwarp();
  }
};

// A piece of the row of a vertex of the frontier.
struct Reached : Piece {
  u32 vertex;
  double distance;
};

// Call visit(Relaxation) for the entries of queue[0 … size - 1], by whole warps of the grid.
template <typename Weight, typename Visit>
__device__ __forceinline__ void relaxations(const Graph<Weight>& g, const u64* queue, u64 size,
                                            Visit visit) {
  auto own_of = [&](u64 item) -> Reached {
    u32 u = u32(item);
    return {piece_of(g.indptr, u, item >> 32), u, number_of(__ldcg(g.distance + u))};
  };
  for_each_entry<1>(queue, 0, size, own_of, [&](const WarpBatch& batch, const Reached& own) {
    Entry entry = batch.entry(0);
    double start = __shfl_sync(ALL_LANES, own.distance, entry.owner);
    Relaxation r = {entry.is_one, __shfl_sync(ALL_LANES, own.vertex, entry.owner), 0, INFINITE, 0};
    if (r.is_one) {
      r.v = g.indices[entry.at];
      r.length = length_of(start + double(g.weights[entry.at]));
      r.known = __ldcg(g.distance + r.v);
    }
    visit(r);
  });
}

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

// The vertices before.
//
// Idea: a breadth-first search along the edges that shortest paths take, those by which a distance
// is the sum it is. Edges of no weight might lead in circles, but levels rise.
//
// Encoding: reached[v] is level << 32 | the smallest vertex before v, of those a level lower; NONE
// until v is reached. One atomicMin keeps both: who finds NONE enqueues v, and a later level never
// replaces an earlier one. The source is on level 0, and before it is no vertex, ~0.
//
// A step is a level; it counts the items that it enqueues. A vertex is enqueued once, so levels are
// stretches of one queue.
//
// REQUIRES: reached[n], counts[3], queue[n + m / USUAL_PIECE].
template <typename Weight>
__global__ void __launch_bounds__(THREADS, 5)
    tree(const i64* indptr, const u32* indices, const Weight* weights, i64 n, i64 source,
         u64* distance, u64* reached, u64* queue, u64* counts, i32* before) {
  Graph<Weight> g = {indptr, indices, weights, distance};
  u64 items = enqueue_alone(indptr, source, queue);
  for (i64 v = thread_number(); v < n; v += thread_count())
    reached[v] = v == source ? u32(NONE) : NONE;
  Steps<u64> steps = {counts};
  steps.clear();
  grid_sync();

  for (u64 level = 1; items; ++level) {
    u64* tail = queue + items;
    Gathered found = Gathered::empty<1>(0);
    u64* count = steps.record();
    auto pass = [&](bool is_one, u32 v) { enqueue_rows(indptr, is_one, v, tail, count); };
    relaxations(g, queue, items, [&](const Relaxation& r) {
      bool is_taken = r.is_one && r.length == r.known && r.length != INFINITE;
      bool is_new = is_taken && atomicMin(reached + r.v, level << 32 | r.u) == NONE;
      found.add(is_new, r.v, pass);
    });
    found.finish(pass);
    queue = tail;
    items = steps.end();
  }
  for (i64 v = thread_number(); v < n; v += thread_count()) before[v] = i32(__ldcg(reached + v));
}
