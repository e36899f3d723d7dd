// Subsets enumerated as the paper does it, over truncated bitmaps. search_cpu.py explains the
// method, which is the same here with a warp in place of a thread.
//
// With hybrid exploration a warp takes 32 children of a node at once, and its lanes take the pairs
// of a child and a word of the level, like the paper's concatenated copies. Else it takes one child
// after the other, and its lanes take the words. Afterwards each lane holds what one child shares.
//
// Instances: search<false, false>, search<false, true>, search<true, false>, search<true, true>
#include "algorithms/biclique/gbc/search.cuh"

// The tasks that a warp takes of 0 … count - 1: from one counter, or every warp has a share of its
// own, its number, and every so many beyond it as there are warps.
struct Tasks {
  u64* next;  // null: every warp has its own share
  i64 mine;

  __device__ __forceinline__ i64 take() {
    if (next) return take_for_warp(next);
    i64 taken = mine;
    mine += warp_count();
    return taken;
  }
};

struct Rows {
  const i64* starts;
  const u32* numbers;
  const u32* bits;
};

struct Level {
  u32* list;     // candidates
  u32* numbers;  // common neighbours, as words
  u32* bits;
  u32 count, words, x;  // x: the place of the chosen candidate
};

// The bits of the word `number` that are set both in `bits` and in row w.
template <bool plain>
__device__ __forceinline__ u32 looked_up(const Rows& rows, u32 w, u32 number, u32 bits) {
  i64 end = rows.starts[w + 1], at = lower_bound(rows.numbers, rows.starts[w], end, number);
  if (at == end || rows.numbers[at] != number) return 0;
  return plain ? 1 : rows.bits[at] & bits;
}

// ANDs the words of a level with row w into the next level. Returns how many have a bit left.
template <bool plain>
__device__ __forceinline__ u32 meet(const Rows& rows, u32 w, const Level& from, Level& to) {
  u32 kept = 0;
  for (u32 first = 0; first < from.words; first += 32) {
    u32 j = first + lane_id(), number = 0, bits = 0;
    if (j < from.words) {
      number = from.numbers[j];
      bits = looked_up<plain>(rows, w, number, from.bits[j]);
    }
    u32 who = __ballot_sync(ALL_LANES, bits != 0);
    if (bits) {
      u32 place = kept + lanes_before(who);
      to.numbers[place] = number;
      to.bits[place] = bits;
    }
    kept += __popc(who);
  }
  __syncwarp();
  return kept;
}

// How many of the level's common neighbours each lane's child has; there are `count` children.
template <bool plain, bool hybrid>
__device__ __forceinline__ u32 share(const Rows& rows, const u32* children, u32 count,
                                     const Level& of, u32* sums) {
  if (!hybrid) {
    u32 mine = 0;
    for (u32 i = 0; i < count; ++i) {
      u32 bits = 0;
      for (u32 j = lane_id(); j < of.words; j += 32)
        bits += __popc(looked_up<plain>(rows, children[i], of.numbers[j], of.bits[j]));
      __syncwarp();
      bits = lanes_sum(bits);
      if (lane_id() == i) mine = bits;
    }
    return mine;
  }
  sums[lane_id()] = 0;
  __syncwarp();
  u32 i = lane_id() / of.words, j = lane_id() % of.words;
  u32 children_on = 32 / of.words, words_on = 32 % of.words;
  while (i < count) {
    u32 bits = looked_up<plain>(rows, children[i], of.numbers[j], of.bits[j]);
    if (bits) atomicAdd(&sums[i], __popc(bits));
    i += children_on;
    j += words_on;
    if (j >= of.words) {
      j -= of.words;
      ++i;
    }
  }
  __syncwarp();
  u32 mine = sums[lane_id()];
  __syncwarp();
  return mine;
}

// Counts all subsets of the root, the candidate chosen at level 0 and later candidates.
template <bool plain, bool hybrid>
__device__ void below(const Rows& rows, Level* levels, u32 x, u32 left, u32 least, u32* sums,
                      Histogram& histogram) {
  u32 level = 0;
  for (;;) {
    const Level now = levels[level];
    if (level) x = now.x;
    if (x + left <= now.count) {
      Level next = levels[level + 1];
      next.words = meet<plain>(rows, now.list[x], now, next);
      u32 kept = 0;
      if (left == 1) {
        u32 bits = 0;
        for (u32 j = lane_id(); j < next.words; j += 32) bits += __popc(next.bits[j]);
        __syncwarp();
        bits = lanes_sum(bits);
        if (lane_id() == 0) histogram.add(bits);
        histogram.note(1);
      } else if (next.words) {
        for (u32 first = x + 1; first < now.count; first += 32) {
          const u32* children = now.list + first;
          u32 count = min(32u, now.count - first);
          u32 common = share<plain, hybrid>(rows, children, count, next, sums);
          bool valid = lane_id() < count;
          if (left == 2) {
            if (valid) histogram.add(common);
            histogram.note(32);
            continue;
          }
          u32 who = __ballot_sync(ALL_LANES, valid && common >= least);
          if (who >> lane_id() & 1)
            next.list[kept + lanes_before(who)] = children[lane_id()];
          kept += __popc(who);
        }
        __syncwarp();
      }
      if (left > 2 && kept >= left - 1) {
        next.count = kept;
        next.x = 0;
        if (lane_id() == 0) levels[level + 1] = next;
        __syncwarp();
        ++level;
        --left;
        continue;
      }
    } else if (level > 0) {
      --level;
      ++left;
    }
    if (level == 0) return;
    __syncwarp();
    if (lane_id() == 0) ++levels[level].x;
    __syncwarp();
  }
}

// keys are those of the roots from `first` on, made by two_hop.cu. The space of a warp: `depth`
// levels, each with list_length candidates and twice row_length words.
template <bool plain, bool hybrid>
__global__ void __launch_bounds__(256)
    search(const u64* keys, const i64* starts, const u32* roots, i64 first, i64 count,
           const i64* row_starts, const u32* row_numbers, const u32* row_bits, i64 by_edges,
           i64 stealing, u64* next, i64 depth, i64 least, i64 list_length, i64 row_length,
           u32* space, Level* all_levels, u64* whole) {
  __shared__ u32 all_sums[8][32];
  Histogram histogram = histogram_of(whole, u32(least));
  Rows rows = {row_starts, row_numbers, row_bits};
  Level* levels = all_levels + warp_number() * depth;
  u32* own = space + warp_number() * depth * (list_length + 2 * row_length);
  for (u32 i = lane_id(); i < depth; i += 32) {
    u32* at = own + i * (list_length + 2 * row_length);
    levels[i] = {at, at + list_length, at + list_length + row_length, 0, 0, 0};
  }
  __syncwarp();
  Tasks tasks = {stealing ? next : nullptr, warp_number()};
  i64 at = -1;  // the root that level 0 is of
  for (i64 task; (task = tasks.take()) < count;) {
    i64 root = by_edges ? i64(keys[task] >> 32) : first + task;
    i64 begin = starts[root] - starts[first];
    u32 columns = u32(starts[root + 1] - starts[root]);
    if (root != at) {
      __syncwarp();
      i64 row = row_starts[roots[root]];
      u32 words = u32(row_starts[roots[root] + 1] - row);
      for (u32 i = lane_id(); i < columns; i += 32) levels[0].list[i] = u32(keys[begin + i]);
      for (u32 j = lane_id(); j < words; j += 32) {
        levels[0].numbers[j] = row_numbers[row + j];
        levels[0].bits[j] = row_bits[row + j];
      }
      __syncwarp();
      if (lane_id() == 0) {
        levels[0].count = columns;
        levels[0].words = words;
      }
      __syncwarp();
      at = root;
    }
    u32 x = by_edges ? u32(task - begin) : 0, end = by_edges ? x + 1 : columns;
    for (; x < end; ++x)
      below<plain, hybrid>(rows, levels, x, u32(depth) - 1, u32(least), all_sums[warp_id()],
                           histogram);
  }
  finish(histogram);
}
