// Graphs made to order on the device: the twin of ingest/datasets/generators.py.
//
// Source: RMAT (Chakrabarti, Zhan, Faloutsos, SDM 2004) with Graph500's parameters. The bits that
// an edge uses are a hash of (seed, edge number), so threads need no generator's state, and the
// list is the same as on the CPU; names[] renames the vertices.
typedef unsigned int u32;
typedef unsigned long long u64;

constexpr u64 GOLDEN = 0x9E3779B97F4A7C15ull;

// SplitMix64's finalizer: every input bit reaches every output bit.
__device__ __forceinline__ u64 mixed(u64 x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// One hash serves two levels. ab, a, abc: the quadrants' thresholds, of 32 bits.
extern "C" __global__ void rmat(u64* keys, u64 edges, int scale, u64 seed, u64 ab, u64 a, u64 abc,
                                const u32* names) {
  u64 e = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (e >= edges) return;
  u64 state = mixed(seed + e * GOLDEN), bits = 0;
  u32 u = 0, v = 0;
  for (int level = 0; level < scale; ++level) {
    u64 draw = bits >> 32;
    if (!(level & 1)) {
      bits = mixed(state += GOLDEN);
      draw = bits & 0xFFFFFFFFull;
    }
    bool down = draw >= ab, right = draw >= (down ? abc : a);
    u = 2 * u + down;
    v = 2 * v + right;
  }
  keys[e] = u64(names[u]) << 32 | names[v];
}

// Both ends uniform over 0 ... vertices - 1.
extern "C" __global__ void uniform(u64* keys, u64 edges, u64 vertices, u64 seed) {
  u64 e = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (e >= edges) return;
  u64 x = mixed(seed + e * GOLDEN);
  keys[e] = ((x >> 32) * vertices >> 32) << 32 | (x & 0xFFFFFFFFull) * vertices >> 32;
}

// A word for each place that looks random: what sorts places into random order.
extern "C" __global__ void hashes(u64* words, u64 count, u64 seed) {
  u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) words[i] = mixed(mixed(seed) + i * GOLDEN);
}
