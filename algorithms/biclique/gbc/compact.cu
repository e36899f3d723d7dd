// Subsets enumerated over compact bitmaps. algorithms/biclique/gbc/search_cpu.py explains the
// method. It is the same here, with words of 32 bits, and a warp in place of a thread.
//
// A lane takes a column. The words of a line lie side by side, so a warp reads them at once. On the
// last level but one of a deeper search few columns are left, so all pairs of columns are
// distributed over the lanes: the hybrid exploration.
//
// Matrices are seldom as large as they could be. Warps therefore have space for smaller ones. A
// pair of a root and its first column that needs more is marked, and searched in a second launch,
// by fewer warps.
#include "algorithms/biclique/gbc/search.cuh"

struct Matrix {
  const u32* words;  // columns side by side, line by line
  u32 columns, lines, x;  // x: the chosen column
};

// What one warp writes for the levels below the root's matrix.
struct Space {
  Matrix* levels;
  u32* cells;      // of all levels
  u32* list;       // of the columns that a level keeps
  u64 level_cells;
};

// How many bits columns x and w share; x is the same in all lanes, w is each lane's own.
__device__ __forceinline__ u32 shared_bits(const Matrix& m, u32 x, u32 w) {
  u32 bits = 0;
  for (u32 j = 0; j < m.lines; ++j) {
    const u32* line = m.words + u64(j) * m.columns;
    bits += __popc(line[x] & line[w]);
  }
  return bits;
}

// How many bits column m.x has; the lanes take the lines, and all get the sum.
__device__ __forceinline__ u32 bits_of(const Matrix& m) {
  u32 bits = 0;
  for (u32 j = lane_id(); j < m.lines; j += 32)
    bits += __popc(m.words[u64(j) * m.columns + m.x]);
  return lanes_sum(bits);
}

// Counts the subsets of the root, column m.x and each later column. A lane takes four columns, so
// that a word of column x serves four. That pays for wide matrices, where depth 3 has most of its
// work.
__device__ __forceinline__ void leaves_of_root(const Matrix& m, Histogram& histogram) {
  u32 first = m.x + 1;
  for (; first + 128 <= m.columns; first += 128) {
    u32 bits[4] = {};
    for (u32 j = 0; j < m.lines; ++j) {
      const u32* line = m.words + u64(j) * m.columns;
      u32 mask = line[m.x];
      if (mask == 0) continue;
#pragma unroll
      for (u32 i = 0; i < 4; ++i) bits[i] += __popc(mask & line[first + 32 * i + lane_id()]);
    }
#pragma unroll
    for (u32 i = 0; i < 4; ++i) histogram.add(bits[i]);
    histogram.note(128);
  }
  for (; first < m.columns; first += 32) {
    u32 w = first + lane_id();
    if (w < m.columns) histogram.add(shared_bits(m, m.x, w));
    histogram.note(32);
  }
}

// Counts all pairs of columns. Pair t consists of the columns a = t mod n and (a + 1 + t div n) mod
// n, which gives every pair once for t below n(n - 1)/2.
__device__ __forceinline__ void leaves_of_level(const Matrix& m, Histogram& histogram) {
  u32 n = m.columns, a = lane_id(), apart = 1;
  u64 pairs = u64(n) * (n - 1) / 2;
  for (u64 t = 0; t < pairs; t += 32) {
    for (; a >= n; a -= n) ++apart;
    u32 b = a + apart;
    if (b >= n) b -= n;
    if (t + lane_id() < pairs) histogram.add(shared_bits(m, a, b));
    a += 32;
    histogram.note(32);
  }
}

// Lists the columns after x that share at least `least` bits with it; returns how many there are.
__device__ __forceinline__ u32 survivors(const Matrix& m, u32 least, u32* list) {
  u32 count = 0;
  for (u32 first = m.x + 1; first < m.columns; first += 32) {
    u32 w = first + lane_id();
    bool kept = w < m.columns && shared_bits(m, m.x, w) >= least;
    u32 who = __ballot_sync(ALL_LANES, kept);
    if (kept) list[count + lanes_before(who)] = w;
    count += __popc(who);
  }
  __syncwarp();
  return count;
}

// The matrix of the columns in the list and the bits of x.
__device__ __forceinline__ Matrix pack(const Matrix& m, const u32* list, u32 count, u32* cells) {
  u32 bits = 0, full = 0;
  for (u32 j = 0; j < m.lines; ++j) {
    u32 mask = m.words[u64(j) * m.columns + m.x];
    bits += __popc(mask);
    full += mask != 0;
  }
  u32 narrow = (bits + 31) / 32;
  bool dense = full == narrow;  // packing the bits would save no word
  for (u32 y = lane_id(); y < count; y += 32) {
    u32 w = list[y], out = 0, bit = 0;
    u64 to = y;
    for (u32 j = 0; j < m.lines; ++j) {
      const u32* line = m.words + u64(j) * m.columns;
      u32 mask = line[m.x];
      if (mask == 0) continue;
      u32 word = line[w];
      if (dense) {
        cells[to] = word & mask;
        to += count;
        continue;
      }
      for (; mask; mask &= mask - 1) {
        out |= (word >> (__ffs(mask) - 1) & 1) << bit;
        if (++bit == 32) {
          cells[to] = out;
          to += count;
          out = bit = 0;
        }
      }
    }
    if (bit) cells[to] = out;
  }
  __syncwarp();
  return {cells, count, narrow, 0};
}

// Counts all subsets of the root, column m.x of its matrix and later columns; `left` columns are to
// be chosen, m.x included. Returns false, and counts nothing, if the next level does not fit in the
// space. No level below that one is larger.
__device__ bool below(Matrix m, u32 left, u32 least, const Space& space, Histogram& histogram) {
  u32 level = 0;
  for (;;) {
    if (m.x + left <= m.columns) {
      if (left == 1) {
        u32 bits = bits_of(m);
        if (lane_id() == 0) histogram.add(bits);
        histogram.note(1);
      } else if (left == 2 && level == 0) {
        leaves_of_root(m, histogram);
      } else if (left == 2) {
        leaves_of_level(m, histogram);
        m.x = m.columns;  // all of the level is done
        continue;
      } else {
        u32 count = survivors(m, least, space.list);
        if (count >= left - 1) {
          // Its matrix has a line for 32 bits of column x.
          if (level == 0 && u64(count) * ((bits_of(m) + 31) / 32) > space.level_cells) return false;
          if (lane_id() == 0) space.levels[level] = m;
          m = pack(m, space.list, count, space.cells + space.level_cells * level);
          ++level;
          --left;
          continue;
        }
      }
    } else if (level > 0) {
      --level;
      ++left;
      __syncwarp();
      m = space.levels[level];
    }
    if (level == 0) return true;
    ++m.x;
  }
}

// keys and words are those of the roots from `first` on, made by two_hop.cu. marks: one bit for
// each pair. marked: search marked pairs only; else all. waiting: how many pairs were marked here.
extern "C" __global__ void __launch_bounds__(256)
    search(const u64* keys, const i64* starts, const i64* cells, const u32* lines, i64 first,
           i64 count, const u32* words, u64* next, i64 depth, i64 least, i64 level_cells,
           i64 list_length, u32* space_cells, u32* lists, Matrix* levels, u32* marks, i64 marked,
           u64* waiting, u64* whole) {
  Histogram histogram = histogram_of(whole, u32(least));
  i64 warp = warp_number(), deeper = max(i64(0), depth - 3);
  Space space = {levels + warp * deeper, space_cells + warp * deeper * level_cells,
                 lists + warp * list_length, u64(level_cells)};
  for (i64 pair; (pair = take_for_warp(next)) < count; __syncwarp()) {
    if (marked && !(marks[pair >> 5] >> (pair & 31) & 1)) continue;
    i64 root = i64(keys[pair] >> 32);
    Matrix m = {words + (cells[root] - cells[first]), u32(starts[root + 1] - starts[root]),
                lines[root], u32(pair - (starts[root] - starts[first]))};
    if (below(m, u32(depth) - 1, u32(least), space, histogram) || lane_id()) continue;
    atomicOr(&marks[pair >> 5], 1u << (pair & 31));
    atomicAdd(waiting, 1ull);
  }
  finish(histogram);
}
