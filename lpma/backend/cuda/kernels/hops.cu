// The vertices within some steps of each query's vertex, by frontiers, on the store as it is.
//
// Idea: a query has a bit for every vertex. A round lists the neighbours of the whole frontier, of
// all queries together (neighbors.cu); each neighbour sets its bit, and whoever finds it unset puts
// the pair (query, vertex) into the next frontier. In the end the bits are read in order: that sorts
// the answer and makes each vertex one entry, without comparing anything.
//
// Bytes: 4 read a neighbour, an atomic operation on its bit, 8 written a new pair; in the end the
// bits once, and 4 written an entry. While all bits fit the L2 cache, so do the atomics.
//
// Requires: bits of `words` u32 a query, all 0 before the first round; `words` times 32 is above
// every id.
#include "lpma/cuda/lookback.cuh"
#include "lpma/cuda/rows.cuh"

constexpr int THREADS = 256;

// Set the bits of m neighbours, of n vertices. asked: the query of each vertex; null: its number.
// Pairs that go on, because their query has more than `step` steps, are listed as next_query and
// next_vertex. counters, 0 before: how many of those there are, and how many bits were set.
extern "C" __global__ void __launch_bounds__(THREADS)
    reach(const i64* indptr, i64 n, const u32* ids, i64 m, const u32* asked, const i64* steps,
          i64 step, u32* bits, i64 words, u32* next_query, u32* next_vertex, u64* counters) {
  i64 at = thread_number(), row = row_of_entry(indptr, n, m);
  bool fresh = false, goes_on = false;
  u32 query = 0, vertex = 0;
  if (at < m) {
    query = asked ? asked[row] : u32(row);
    vertex = ids[at];
    u32* word = bits + query * words + (vertex >> 5);
    u32 bit = 1u << (vertex & 31);
    fresh = !(*(volatile u32*)word & bit) && !(atomicOr(word, bit) & bit);
    goes_on = fresh && steps[query] > step;
  }
  u64 to = place_of_lane(goes_on, &counters[0]);
  place_of_lane(fresh, &counters[1]);
  if (goes_on) {
    next_query[to] = query;
    next_vertex[to] = vertex;
  }
}

// The vertices whose bits are set, by query: a thread a word of q times `words`.
extern "C" __global__ void __launch_bounds__(THREADS)
    list_reached(const u32* bits, i64 words, i64 q, i64* indptr, u32* ids, u64* status) {
  u32 tile = take_tile(status);
  i64 at = i64(tile) * blockDim.x + threadIdx.x, all = q * words;
  u32 word = at < all ? bits[at] : 0;
  u64 to = grid_prefix<THREADS>(status, tile, __popc(word));
  if (at > all) return;
  i64 query = at / words;
  if (at == query * words) indptr[query] = i64(to);
  u32 first = u32(at - query * words) << 5;
  for (; word; word &= word - 1) ids[to++] = first + __ffs(word) - 1;
}
