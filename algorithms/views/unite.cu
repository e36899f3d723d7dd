// The union of the sorted rows of two graphs, one the transpose of the other: one merge of all
// entries.
//
// Idea: rows follow each other in both graphs, so the entries of both, by row and then by target,
// are two sorted lists, and merging them merges every row with its counterpart. Hubs and empty rows
// need nothing special. The merged list, repeats included, is cut into tiles of equal length; where
// a cut falls in both lists is found by a search (*merge path*). A block merges a tile in shared
// memory, drops repeats and loops, and learns from the blocks before it where its entries go.
//
// Source: Green, McColl and Bader, "GPU merge path", ICS 2012. Places: lpma/cuda/lookback.cuh.
//
// Encoding: a key is row - first row of the tile << 32 | target.
//
// Requires: sorted rows, as many in both graphs: n > 0.
#include "lpma/cuda/lookback.cuh"
#include "lpma/cuda/rows.cuh"

constexpr u32 BLOCK = 256, EACH = 8, TILE = BLOCK * EACH;  // simple_cuda.py has them, too
constexpr u32 ROWS = 1024;  // of a tile, whose starts shared memory holds
// Where the merged list is cut: before entry `first` of the one graph and entry `other` of the
// other. `row` is the last row that starts at the cut or before; n at the end of the list.
struct Cut {
  i64 row, first, other;
};

// How many of the first `count` entries of two merged lists come from list a, whose entries go
// first where they are equal.
template <typename Place, typename T>
__device__ __forceinline__ Place merge_path(const T* a, Place length, const T* b,
                                            Place other_length, Place count) {
  Place low = count > other_length ? count - other_length : 0;
  return first_false(low, min(count, length),
                     [&](Place i) { return a[i] <= b[count - 1 - i]; });
}

// A thread a cut: one before each tile, and one at the end.
extern "C" __global__ void cut_tiles(const i64* indptr, const u32* indices, const i64* other_indptr,
                                     const u32* other, i64 n, i64 tiles, Cut* cuts) {
  i64 number = thread_number();
  if (number > tiles) return;
  if (number == tiles) {
    cuts[number] = {n, indptr[n], other_indptr[n]};
    return;
  }
  i64 at = number * TILE;
  i64 row = first_false(i64(1), n, [&](i64 r) { return indptr[r] + other_indptr[r] <= at; }) - 1;
  i64 begin = indptr[row], other_begin = other_indptr[row], count = at - begin - other_begin;
  i64 taken = merge_path(indices + begin, indptr[row + 1] - begin, other + other_begin,
                         other_indptr[row + 1] - other_begin, count);
  cuts[number] = {row, begin + taken, other_begin + count - taken};
}

struct Rows {
  const i64* indptr;
  const u32* indices;
};

// The entries of a tile: of each graph from one cut to the next.
struct Tile {
  Rows own, other;
  Cut from, to;

  __device__ __forceinline__ u32 length() const { return u32(to.first - from.first); }
  __device__ __forceinline__ u32 other_length() const { return u32(to.other - from.other); }
};

// The keys of `count` entries from `first` on. For a tile of more than ROWS rows.
__device__ __forceinline__ void search_keys(const Rows& rows, const Tile& t, i64 first, u32 count,
                                            u64* keys) {
  for (u32 i = threadIdx.x; i < count; i += BLOCK) {
    u64 row = last_start(rows.indptr, t.from.row, t.to.row, first + i) - t.from.row;
    keys[i] = row << 32 | rows.indices[first + i];
  }
}

// The keys of a tile, those of the one graph before those of the other. All searches for the rows
// of a thread's entries go on side by side.
__device__ __forceinline__ void load_keys(const Tile& t, u64* keys) {
  __shared__ i32 starts[2][ROWS];
  u32 rows = u32(min(t.to.row - t.from.row + 1, i64(ROWS) + 1));
  u32 length = t.length(), count = length + t.other_length();
  if (rows > ROWS) {
    search_keys(t.own, t, t.from.first, length, keys);
    search_keys(t.other, t, t.from.other, count - length, keys + length);
    return;
  }
  for (u32 i = threadIdx.x; i < rows; i += BLOCK) {
    starts[0][i] = i32(min(t.own.indptr[t.from.row + i] - t.from.first, i64(TILE)));
    starts[1][i] = i32(min(t.other.indptr[t.from.row + i] - t.from.other, i64(TILE)));
  }
  u32 target[EACH], row[EACH] = {};
#pragma unroll
  for (u32 k = 0; k < EACH; ++k) {
    u32 i = k * BLOCK + threadIdx.x;
    if (i < count)
      target[k] = i < length ? t.own.indices[t.from.first + i]
                             : t.other.indices[t.from.other + (i - length)];
  }
  __syncthreads();
  for (u32 step = ROWS / 2; step; step >>= 1) {
    if (step >= rows) continue;
#pragma unroll
    for (u32 k = 0; k < EACH; ++k) {
      u32 i = k * BLOCK + threadIdx.x, next = row[k] + step;
      bool is_other = i >= length;
      if (next < rows && starts[is_other][next] <= i32(is_other ? i - length : i)) row[k] = next;
    }
  }
#pragma unroll
  for (u32 k = 0; k < EACH; ++k) {
    u32 i = k * BLOCK + threadIdx.x;
    if (i < count) keys[i] = u64(row[k]) << 32 | target[k];
  }
}

// A thread's entries of a tile: a bit for each that is kept, and the targets.
struct Part {
  u32 kept, target[EACH];
};

// One more than the key of entry `entry` - 1 if that is in `row` too; else 0.
__device__ __forceinline__ u64 after_key_before(const Rows& rows, i64 row, i64 entry) {
  return entry > rows.indptr[row] ? u64(rows.indices[entry - 1]) + 1 : 0;
}

// Two lists of keys, and for each one more than the key before its first; 0: there is none.
struct Lists {
  const u64 *own, *other;
  i32 length, other_length;
  u64 before_own, before_other;
};

// Merge EACH keys from place `at` on.
__device__ __forceinline__ Part merge_part(const Lists& l, i32 at, i64 first_row) {
  Part part = {0, {}};
  i32 count = l.length + l.other_length;
  at = min(at, count);
  i32 i = merge_path(l.own, l.length, l.other, l.other_length, at), j = at - i;
  u64 after = max(i ? l.own[i - 1] + 1 : l.before_own, j ? l.other[j - 1] + 1 : l.before_other);
#pragma unroll
  for (u32 k = 0; k < EACH; ++k) {
    if (at + k >= count) break;
    bool is_own = i < l.length && (j == l.other_length || l.own[i] <= l.other[j]);
    u64 key = is_own ? l.own[i] : l.other[j];
    bool is_loop = first_row + i64(key >> 32) == i64(u32(key));
    part.kept |= u32(key + 1 != after && !is_loop) << k;
    part.target[k] = u32(key);
    after = key + 1;
    i += is_own;
    j += !is_own;
  }
  return part;
}

// A block a tile. status: u64[1 + tiles], zero. united_indptr: i64[n+1]; united: room for the
// entries of both graphs.
extern "C" __global__ void __launch_bounds__(BLOCK)
    unite_tiles(const i64* indptr, const u32* indices, const i64* other_indptr, const u32* other,
                const Cut* cuts, u64* status, i64* united_indptr, u32* united) {
  __shared__ u64 keys[TILE];
  __shared__ u32 place[BLOCK], kept[BLOCK];  // of each thread's part
  __shared__ u64 before_tile;
  u32 tile = take_tile(status);
  Tile t = {{indptr, indices}, {other_indptr, other}, cuts[tile], cuts[tile + 1]};
  Lists lists = {keys, keys + t.length(), i32(t.length()), i32(t.other_length()),
                 after_key_before(t.own, t.from.row, t.from.first),
                 after_key_before(t.other, t.from.row, t.from.other)};
  load_keys(t, keys);
  __syncthreads();
  Part part = merge_part(lists, threadIdx.x * EACH, t.from.row);
  u64 before = grid_prefix<BLOCK>(status, tile, u64(__popc(part.kept)));
  if (threadIdx.x == 0) before_tile = before;
  __syncthreads();
  u32* kept_targets = (u32*)keys;  // nobody reads keys any more
  u32 at = u32(before - before_tile);
  place[threadIdx.x] = at;
  kept[threadIdx.x] = part.kept;
#pragma unroll
  for (u32 k = 0; k < EACH; ++k)
    if (part.kept >> k & 1) kept_targets[at++] = part.target[k];
  __syncthreads();
  u32 total = place[BLOCK - 1] + __popc(kept[BLOCK - 1]);
  for (u32 i = threadIdx.x; i < total; i += BLOCK) united[before_tile + i] = kept_targets[i];
  // Rows that start behind the tile's first entry, up to its end; those at the very beginning, too.
  i64 start = t.from.first + t.from.other;
  for (i64 row = (tile ? t.from.row + 1 : 0) + threadIdx.x; row <= t.to.row; row += BLOCK) {
    i64 gone = indptr[row] + other_indptr[row] - start;  // entries of the tile before the row
    u32 last = u32(max(gone, i64(1)) - 1);
    u32 in_part = kept[last / EACH] & ((2u << last % EACH) - 1);
    united_indptr[row] = gone ? before_tile + place[last / EACH] + __popc(in_part) : 0;
  }
}

// A thread an entry: *falls becomes 1 if an entry of a row is below the one before it.
extern "C" __global__ void find_fall(const i64* indptr, const u32* indices, i64 n, i64 m,
                                     u32* falls) {
  i64 i = thread_number();
  if (i == 0 || i >= m || indices[i] >= indices[i - 1]) return;
  if (indptr[last_start(indptr, 0, n - 1, i)] != i) *falls = 1;
}
