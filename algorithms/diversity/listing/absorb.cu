// What a context that is sure absorbs of its owner's row, and what it leaves: absorb.py says why that
// tells the score.
//
// A block takes an owner. The first HEAD vertices of the row, as an ego network in shared memory,
// are shrunk as in listing.cu; the largest tree of what stays is the context. Then each thread looks
// at another vertex of the row, of larger rank than all of the head, so that its lower row begins
// with its neighbours in the head. Three or four entries settle most vertices. Those that are left
// are written one behind the other, in the order of the row.
//
// Instances: absorb<1>, absorb<2>
#include "algorithms/diversity/listing/shrink.cuh"
#include "lpma/cuda/take.cuh"

constexpr i32 HEAD = 128, WORDS = HEAD / 32;  // as in cuda.py
constexpr i32 THREADS = 256;
constexpr i32 STEP = 8;  // neighbours in the context from one look for a core among them to the next

struct Context {
  const u32* head;  // [HEAD], rising
  const u32* bits;  // [HEAD, WORDS]: the edges that are sure
  u32 members[WORDS];
};

// Whether edges that are sure make a subgraph of these vertices with all degrees at least `least`.
__device__ __forceinline__ bool have_core(const Context& context, const u32 (&vertices)[WORDS],
                                          i64 least) {
  u32 left[WORDS];
#pragma unroll
  for (i32 j = 0; j < WORDS; ++j) left[j] = vertices[j];
  for (;;) {
    bool gone = false, any = false;
#pragma unroll
    for (i32 j = 0; j < WORDS; ++j) {
      for (u32 rest = left[j]; rest; rest &= rest - 1) {
        i32 bit = __ffs(rest) - 1, degree = 0;
        const u32* row = context.bits + (32 * j + bit) * WORDS;
#pragma unroll
        for (i32 i = 0; i < WORDS; ++i) degree += __popc(row[i] & left[i]);
        if (degree >= least) {
          any = true;
        } else {
          left[j] &= ~(1u << bit);
          gone = true;
        }
      }
    }
    if (!gone || !any) return any;
  }
}

// Whether the context has vertex v, of larger rank than the head. REQUIRES: fewest > 1.
template <int MODEL>
__device__ __forceinline__ bool absorbs(const Context& context, const u32* lower, i64 length,
                                        i64 k) {
  i64 enough = MODEL == CORE ? k : max(k - 1, i64(1));
  u32 hits[WORDS] = {};
  i32 number = 0;
  u32 at = 0;
  for (i64 i = 0; i < length; ++i) {
    u32 w = lower[i];
    at = lower_bound(context.head, at, u32(HEAD), w);
    if (at == HEAD) break;
    if (context.head[at] != w) continue;
    u32 bit = 0;
#pragma unroll
    for (i32 j = 0; j < WORDS; ++j) {
      u32 mine = at >> 5 == j ? context.members[j] & 1u << (at & 31) : 0;
      hits[j] |= mine;
      bit |= mine;
    }
    if (bit == 0 || ++number < enough) continue;
    if (MODEL == CORE) return true;
    if ((number - enough) % STEP == 0 && have_core(context, hits, k - 2)) return true;
  }
  return MODEL == TRUSS && number > enough && have_core(context, hits, k - 2);
}

// The root of the largest tree, of `fewest` vertices or more; NONE if there is none.
template <class Team>
__device__ i32 largest_tree(const Team& team, const Ego& ego, i64 fewest, u64* best) {
  if (team.thread() == 0) *best = 0;
  for (i32 x = team.thread(); x < ego.d; x += team.threads()) ego.count[x] = 0;
  __syncthreads();
  for (i32 x = team.thread(); x < ego.d; x += team.threads())
    if (ego.root[x] != NONE) atomicAdd(&ego.count[root_of(x, ego.root)], 1);
  __syncthreads();
  for (i32 x = team.thread(); x < ego.d; x += team.threads())
    if (ego.count[x] >= fewest) atomicMax(best, u64(ego.count[x]) << 32 | u32(x));
  __syncthreads();
  return *best ? i32(*best & 0xffffffff) : NONE;
}

// rest[starts[i] … starts[i + 1] - 1] is room for the row of owner i, of more than HEAD vertices.
// left[i]: how many are written there; NONE where the head has no context.
template <int MODEL>
__global__ void __launch_bounds__(THREADS)
    absorb(const i64* slots_indptr, const u32* slots, const i64* lower_indptr, const u32* lower,
           const i64* owners, i64 number, i64 k, i64 fewest, const i64* starts, u32* rest,
           i32* left, u64* next) {
  __shared__ u32 head[HEAD], members[WORDS];
  __shared__ i32 room[HEAD * (2 + WORDS)];
  __shared__ i32 of_warp[THREADS / 32];
  __shared__ u64 best;
  Block<0> team;
  Rows g = {slots_indptr, slots, lower_indptr, lower};
  for (i64 i; (i = take_for_block(next)) < number;) {
    const u32* row = slots + slots_indptr[owners[i]];
    i32 d = i32(slots_indptr[owners[i] + 1] - slots_indptr[owners[i]]);
    for (i32 x = threadIdx.x; x < HEAD; x += THREADS) head[x] = row[x];
    Ego ego = {head, HEAD, WORDS, room, room + HEAD, (u32*)(room + 2 * HEAD)};
    clear<MODEL>(team, ego);
    __syncthreads();
    list_edges<MODEL>(team, g, ego);
    __syncthreads();
    shrink_and_join<MODEL>(team, ego, k);
    i32 root = largest_tree(team, ego, fewest, &best);
    if (root == NONE) {
      if (threadIdx.x == 0) left[i] = NONE;
      continue;
    }
    for (i32 x = threadIdx.x; x < HEAD; x += THREADS) {  // whole warps
      u32 inside = __ballot_sync(ALL_LANES, ego.root[x] != NONE && root_of(x, ego.root) == root);
      if (lane_id() == 0) members[x >> 5] = inside;
    }
    __syncthreads();
    Context context = {head, ego.bits, {}};
#pragma unroll
    for (i32 j = 0; j < WORDS; ++j) context.members[j] = members[j];
    i32 written = 0;
    for (i32 first = 0; first < d; first += THREADS) {
      i32 x = first + threadIdx.x;
      bool stays = false;
      if (x < HEAD) {
        stays = !(members[x >> 5] >> (x & 31) & 1);
      } else if (x < d) {
        i64 begin = lower_indptr[row[x]];
        stays = !absorbs<MODEL>(context, lower + begin, lower_indptr[row[x] + 1] - begin, k);
      }
      __syncwarp();
      u32 staying = __ballot_sync(ALL_LANES, stays);
      if (lane_id() == 0) of_warp[warp_id()] = __popc(staying);
      __syncthreads();
      i32 before = written;
      for (i32 w = 0; w < THREADS / 32; ++w) {
        if (w < warp_id()) before += of_warp[w];
        written += of_warp[w];
      }
      if (stays) rest[starts[i] + before + lanes_before(staying)] = row[x];
      __syncthreads();
    }
    if (threadIdx.x == 0) left[i] = written;
  }
}
