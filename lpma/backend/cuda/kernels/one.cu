// One operation at a time: an edge looked up, a vertex's neighbours listed, one update applied.
//
// Idea: such an operation costs a launch and a wait. So it is one launch of one warp, which writes the
// answer into the host's memory and then a ticket, for which the host polls. Only latency counts: a
// warp reads LAYERS layers of fences at a time, which are one subtree, and then all keys of a leaf.
//
// `update_one` is the twin of `update` in lpma/backend/numba/one.py: it applies an update only if
// its leaf alone has to change, and else refuses before it writes anything.
//
// A warp a kernel, but for count_one.
#include "lpma/backend/cuda/kernels/move.cuh"
#include "lpma/backend/cuda/kernels/states.cuh"

constexpr int LAYERS = 5;  // a subtree of 31 windows, a lane each

// An update, and where its answer goes.
struct Request {
  i64* answer;  // words of the host's memory: the ticket, then what the kernel says
  i64 ticket;
  const i64* most;  // the bounds of judge.cuh, of both stores
  const i64* least;
  const i64* back_most;
  const i64* back_least;
  double weight;
  i64 time;
  i64 least_held;  // slots that a store must hold
  u32 src, dst;    // MARKER for a vertex by itself
  int kind;
  int from_top, back_from_top;  // 1 where the strategy is top-down
  int back;                     // whose store (dst, src) is updated too
};

enum Back { NONE, ANOTHER, SAME };
constexpr i64 REFUSED = -1;

// Where a key is, or belongs.
struct Place {
  u32 window;
  u32 position;
  bool found;
};

__device__ __forceinline__ u32 leaf_of_key(const Store& s, u64 key) {
  u32 p = 1, lane = lane_id();
  int depth = 31 - __clz(lane | 1);  // a lane's number is one in a heap, as a window's is
  for (int down = s.m; down > 0;) {
    int layers = min(down, LAYERS);
    bool right = false;
    if (lane && depth < layers) right = key >= s.fences[(p << depth) + lane - (1u << depth)];
    u32 rights = __ballot_sync(ALL_LANES, right), node = 1;
    for (int i = 0; i < layers; ++i) node = 2 * node + (rights >> node & 1);
    p = (p << layers) + node - (1u << layers);
    down -= layers;
  }
  return p;
}

__device__ __forceinline__ Place find_key(const Store& s, u64 key) {
  u32 window = leaf_of_key(s, key), count = s.counts[window];
  Slot at = segment_at(s, window - (1u << s.m));
  Place place = {window, 0, false};
  for (u32 first = 0; first < count; first += 32) {
    u32 i = first + lane_id();
    u64 held = i < count ? key_at(s, at, i) : LAST_FENCE;
    place.position += __popc(__ballot_sync(ALL_LANES, held < key));
    place.found |= __any_sync(ALL_LANES, held == key) != 0;
  }
  return place;
}

// Write the ticket, after all that the lanes wrote.
__device__ __forceinline__ void tell(i64* answer, i64 ticket) {
  __threadfence_system();
  __syncwarp();
  if (lane_id() == 0) *(volatile i64*)answer = ticket;
}

// Whether an edge is there, its weight as the bits of a double, and its time.
extern "C" __global__ void __launch_bounds__(32)
    look_up(const __grid_constant__ Store s, i64 src, i64 dst, i64* answer, i64 ticket) {
  Place place = find_key(s, edge_key(src, dst));
  if (lane_id() == 0) {
    Slot at = segment_at(s, place.window - (1u << s.m));
    answer[1] = place.found;
    answer[2] = __double_as_longlong(place.found ? double(weight_at(s, at, place.position)) : 0);
    answer[3] = place.found ? time_at(s, at, place.position) : 0;
  }
  tell(answer, ticket);
}

// The neighbours of a vertex, in the host's memory, and their number; if that is more than `room`,
// the first ones, and any number above it.
extern "C" __global__ void __launch_bounds__(32)
    list_neighbors(const __grid_constant__ Store s, i64 src, u32* ids, i64 room, i64* answer,
                   i64 ticket) {
  u64 first = edge_key(src, 0), end = edge_key(src, MARKER);
  u32 leaves = 1u << s.m;
  i64 n = 0;
  bool past = false;
  for (u32 rank = leaf_of_key(s, first) - leaves; rank < leaves && !past && n <= room; ++rank) {
    u32 count = slots_in(s, rank);
    Slot at = segment_at(s, rank);
    for (u32 begin = 0; begin < count && !past; begin += 32) {
      u32 i = begin + lane_id();
      u64 key = i < count ? key_at(s, at, i) : 0;
      bool own = i < count && key >= first && key < end;
      past = __any_sync(ALL_LANES, key >= end) != 0;
      u32 owned = __ballot_sync(ALL_LANES, own);
      i64 to = n + lanes_before(owned);
      if (own && to < room) ids[to] = key_dst(key);
      n += __popc(owned);
    }
  }
  if (lane_id() == 0) answer[1] = n;
  tell(answer, ticket);
}

// The number of a vertex's neighbours, on the device: two threads, as count_neighbors in query.cu.
extern "C" __global__ void __launch_bounds__(32)
    count_one(const __grid_constant__ Store s, i64 src, i64* counts) {
  bool end = threadIdx.x & 1;
  i64 before = first_at_or_after(s, edge_key(src, end ? MARKER : 0)).before;
  i64 other = __shfl_xor_sync(ALL_LANES, before, 1);
  if (threadIdx.x == 0) counts[0] = other - before;
}

// Whether the count of a leaf may change without a larger window or the store being rebalanced.
// `other`: a leaf of the same store whose count changes alike, 0 for none.
__device__ __forceinline__ bool fits(const Store& s, u32 window, u32 other, int change,
                                     bool from_top, const i64* most, const i64* least,
                                     i64 least_held) {
  bool good = i64(s.counts[1]) >= least_held;
  int layer = lane_id();
  if (change && layer <= s.m && (layer == 0 || layer == s.m || from_top)) {
    i64 by = other >> layer == window >> layer ? 2 * change : change;
    i64 after = i64(s.counts[window >> layer]) + by;
    u32 entry = bound_of(layer, window >> layer);
    if (by > 0 && after > most[entry]) good = false;
    if (by < 0 && s.m > 0 && after < least[entry]) good = false;
  }
  return __all_sync(ALL_LANES, good) != 0;
}

// Insert a key, remove it, or overwrite its value. Returns what its leaf holds then.
__device__ __forceinline__ u32 put(const Store& s, u64 key, Place place, int change, State after) {
  u32 lane = lane_id(), count = s.counts[place.window];
  Slot at = segment_at(s, place.window - (1u << s.m));
  if (change) {
    Content moved[SLOTS_A_LANE];
    u32 begin = place.position + (change < 0);
#pragma unroll
    for (int j = 0; j < SLOTS_A_LANE; ++j) {
      u32 i = lane + 32 * j;
      if (i >= begin && i < count) moved[j] = content_at(s, at, i);
    }
    __syncwarp();
#pragma unroll
    for (int j = 0; j < SLOTS_A_LANE; ++j) {
      u32 i = lane + 32 * j;
      if (i >= begin && i < count) set_content(s, at, i + change, moved[j]);
    }
    if (lane <= s.m) s.counts[place.window >> lane] += change;
  }
  if (lane == 0 && change > 0)
    set_content(s, at, place.position, {key, after.weight, after.time});
  if (lane == 0 && change == 0) set_value(s, at, place.position, after.weight, after.time);
  __syncwarp();
  return count + change;
}

// Apply an update; answers (action, why nothing changed, what the leaf holds then, the other leaf).
extern "C" __global__ void __launch_bounds__(32)
    update_one(const __grid_constant__ Store s, const __grid_constant__ Store back,
               const __grid_constant__ Request r) {
  u64 key = edge_key(r.src, r.dst), back_key = edge_key(r.dst, r.src);
  Place place = find_key(s, key), back_place = {0, 0, false};
  if (r.back) back_place = find_key(back, back_key);
  State before = {false, Weight(0), 0};
  if (place.found) before = stored_at(s, segment_at(s, place.window - (1u << s.m)), place.position);
  Operation o = {r.kind, is_weighted(r.kind) ? r.weight : 0, r.time};
  State after = apply_operation(o, r.dst == MARKER, before);
  int change = after.present - before.present;
  i64 action = change > 0 ? INSERT : change < 0 ? REMOVE : after.present ? WRITE : SKIP;
  if (!WEIGHT_BYTES && o.kind == APPEND && o.weight == 0) action = SKIP;  // nothing is done to it
  u32 held = 0, back_held = 0;
  if (action != SKIP) {
    bool same = r.back == SAME;
    bool fit = fits(s, place.window, same ? back_place.window : 0, change, r.from_top, r.most,
                    r.least, r.least_held);
    if (r.back)
      fit &= fits(back, back_place.window, same ? place.window : 0, change, r.back_from_top,
                  r.back_most, r.back_least, r.least_held);
    if (fit) {
      held = put(s, key, place, change, after);
      // In the same store, the first key may have moved the second.
      if (same) back_place = find_key(back, back_key);
      if (r.back) back_held = put(back, back_key, back_place, change, after);
    } else {
      action = REFUSED;
    }
    if (fit && same && back_place.window == place.window) held = back_held, back_held = ~0u;
  }
  if (lane_id() == 0) {
    r.answer[1] = action;
    r.answer[2] = why_unchanged(o, before, after);
    r.answer[3] = held;
    r.answer[4] = i32(back_held);
  }
  tell(r.answer, r.ticket);
}
