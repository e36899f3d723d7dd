// Core numbers by the paper's peeling, in the nine versions of its Table II.
//
// Source: Ahmad et al., "Accelerating k-core decomposition by a GPU", ICDE 2023, Algorithms 2 and
// 3.
//
// Idea: two kernels a level k. In `scan` each block collects the vertices of degree k. In `loop` it
// peels them, and those that fall to k by its doing, a warp a vertex, each block from a queue of
// its own. Degrees that two warps took below k are repaired, so that they end as core numbers.
//
// COMPACTION: how vertices are appended to the queue, whose end is in shared memory
//   ONE      each by an atomic of its own (Ours)
//   BALLOT   those of a warp together, placed by a ballot (BC)
//   SCANNED  in `scan` those of a block together, placed by a scan of two stages (Figure 9); in
//            `loop` those of a warp, by a Hillis-Steele scan (EC)
// READ: where vertices are read from
//   PLAIN       the queue in global memory
//   BUFFERED    the first vertices that `loop` appends stay in shared memory (SM, Figure 7)
//   PREFETCHED  warp 0 reads what the 31 others peel in the next turn (VP)
//
// A queue is a ring. The paper's program fails when one overflows; here what finds no room is
// spilled to one list for all blocks, and peeled by further turns of `loop`, after `refill`.
//
// Requires: blocks of BLOCK threads, the same number of them in every kernel.
//
// Instances: scan<0>, scan<1>, scan<2>, loop<0, 0>, loop<0, 1>, loop<0, 2>, loop<1, 0>, loop<1, 1>,
//   loop<1, 2>, loop<2, 0>, loop<2, 1>, loop<2, 2>
#include "lpma/cuda/scan.cuh"

constexpr u32 BLOCK = 1024, WARPS = BLOCK / 32;
constexpr u32 BUFFER = 4096;  // vertices in shared memory, BUFFERED

enum Compaction { ONE, BALLOT, SCANNED };
enum Read { PLAIN, BUFFERED, PREFETCHED };

// The vertices that found no room.
struct Spill {
  u32* vertices;
  u32* number;
};

// A block's queue. Positions count from the beginning of the level; `initial` vertices were there
// before `loop`.
template <int READ>
struct Queue {
  u32* ring;
  u32 room, initial;
  u32* buffer;
  Spill spill;

  __device__ __forceinline__ u32* slot(u32 position) const {
    if (READ == BUFFERED && position >= initial) {
      if (position - initial < BUFFER) return buffer + position - initial;
      position -= BUFFER;
    }
    return ring + position % room;
  }

  // Put v at a position, where it finds room: positions from `first` on are in use.
  __device__ __forceinline__ void put(u32 first, u32 position, u32 v) const {
    if (position - first < room)
      *slot(position) = v;
    else
      spill.vertices[atomicAdd(spill.number, 1u)] = v;
  }
};

// The position of each lane's vertex, for lanes that found one; whole warps.
template <int COMPACTION>
__device__ __forceinline__ u32 reserve(u32* end, bool found) {
  if (COMPACTION == ONE) return found ? atomicAdd(end, 1u) : 0;
  u32 before, total, place = 0;
  if (COMPACTION == BALLOT) {
    u32 lanes = __ballot_sync(ALL_LANES, found);
    before = lanes_before(lanes);
    total = __popc(lanes);
  } else {
    u32 upto = warp_inclusive(u32(found));
    before = upto - found;
    total = __shfl_sync(ALL_LANES, upto, 31);
  }
  if (lane_id() == 31 && total) place = atomicAdd(end, total);
  return __shfl_sync(ALL_LANES, place, 31) + before;
}

// ends[block]: the number of vertices of degree k that the block has in its ring.
template <int COMPACTION>
__global__ void __launch_bounds__(BLOCK)
    scan(i64 n, i32 k, const i32* degree, u32* rings, u32 room, u32* ends, u32* spilled,
         u32* counts) {
  __shared__ u32 end;
  Queue<PLAIN> queue = {rings + u64(blockIdx.x) * room, room, 0, nullptr, {spilled, counts + 1}};
  if (threadIdx.x == 0) end = 0;
  __syncthreads();
  u32 so_far = 0;  // SCANNED
  for (i64 first = 0; first < n; first += i64(gridDim.x) * BLOCK) {
    i64 v = first + thread_number();
    bool found = v < n && degree[v] == k;
    u32 position;
    if (COMPACTION == SCANNED) {
      u32 total, before = block_exclusive<BLOCK>(u32(found), total);
      position = so_far + before;
      so_far += total;
    } else {
      position = reserve<COMPACTION>(&end, found);
    }
    if (found) queue.put(0, position, u32(v));
  }
  __syncthreads();
  if (threadIdx.x == 0) ends[blockIdx.x] = min(COMPACTION == SCANNED ? so_far : end, room);
}

// Take one from the degree of each neighbour of v, and queue those that fall to k. One whole warp.
template <int COMPACTION, int READ>
__device__ __forceinline__ void peel(const i64* indptr, const u32* indices, i32* degree, i32 k,
                                     u32 v, const Queue<READ>& queue, u32 first, u32* end) {
  i64 last = indptr[v + 1ull];
  for (i64 from = indptr[v]; from < last; from += 32) {
    __syncwarp();
    i64 e = from + lane_id();
    u32 u = 0;
    bool found = false;
    if (e < last) {
      u = indices[e];
      if (degree[u] > k) {
        i32 before = atomicSub(degree + u, 1);
        found = before == k + 1;
        if (before <= k) atomicAdd(degree + u, 1);
      }
    }
    u32 position = reserve<COMPACTION>(end, found);
    if (found) queue.put(first, position, u);
  }
}

// counts[0] grows by the vertices peeled, counts[1] by those spilled.
template <int COMPACTION, int READ>
__global__ void __launch_bounds__(BLOCK)
    loop(const i64* indptr, const u32* indices, i32 k, i32* degree, u32* rings, u32 room,
         const u32* ends, u32* spilled, u32* counts) {
  __shared__ u32 start, end;  // positions of the next vertex to peel, and behind the last
  __shared__ u32 buffer[READ == BUFFERED ? BUFFER : 1];
  __shared__ u32 fetched[2][32];
  u32 warp = warp_id(), ready = 0, side = 0, before = 0, from, to;
  Queue<READ> queue = {rings + u64(blockIdx.x) * room, room, ends[blockIdx.x], buffer,
                       {spilled, counts + 1}};
  if (threadIdx.x == 0) {
    start = 0;
    end = queue.initial;
  }
  for (;;) {
    __syncthreads();
    from = start;
    to = end - before > room ? before + room : end;  // what lies beyond was spilled
    if (from == to && ready == 0) break;
    if (threadIdx.x == 0) end = to;
    __syncthreads();
    before = from;
    if (READ == PREFETCHED) {
      u32 taken = min(WARPS - 1, to - from);
      if (warp == 0) {
        if (lane_id() < taken) fetched[side ^ 1][lane_id()] = *queue.slot(from + lane_id());
        if (lane_id() == 0) start = from + taken;
      } else if (warp - 1 < ready) {
        peel<COMPACTION>(indptr, indices, degree, k, fetched[side][warp - 1], queue, from, &end);
      }
      ready = taken;
      side ^= 1;
    } else {
      if (threadIdx.x == 0) start = min(from + WARPS, to);
      if (from + warp < to)
        peel<COMPACTION>(indptr, indices, degree, k, *queue.slot(from + warp), queue, from, &end);
    }
  }
  if (threadIdx.x == 0) atomicAdd(counts, to);
}

// Deal spilled[first … first + number - 1] out to the rings. REQUIRES: number <= gridDim.x * room.
extern "C" __global__ void refill(i64 first, i64 number, const u32* spilled, u32* rings, u32 room,
                                  u32* ends) {
  i64 share = (number + gridDim.x - 1) / gridDim.x;
  i64 begin = min(blockIdx.x * share, number), held = min(share, number - begin);
  for (i64 i = threadIdx.x; i < held; i += blockDim.x)
    rings[u64(blockIdx.x) * room + i] = spilled[first + begin + i];
  if (threadIdx.x == 0) ends[blockIdx.x] = u32(held);
}
