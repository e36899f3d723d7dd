// CUDA's language and intrinsics on the host, as far as our kernels use them.
//
// Idea: a block is a thread of the system, and the block's threads are fibers of that, each with a
// stack of its own. A fiber that has to wait, at a barrier or for the lanes of its warp, lets the
// others run. Shared memory is thread_local, so it is the block's. Blocks run side by side, and
// really race.
//
// Tricks: fibers change by _setjmp and _longjmp, which ask nothing of the system; only a fiber's first
// turn takes setcontext. Lanes exchange values in two places by turns: a lane can't be two operations
// ahead of another, since each waits for all of them.
//
// Requires: a warp's lanes that have ended take part in nothing. Clusters and PTX are not here:
// build.py puts a grid.cuh of its own in place of ours.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sched.h>
#include <sys/mman.h>
#include <thread>
#include <type_traits>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static thread_local
#define __CUDA_ARCH__ 700

struct uint2 { unsigned x, y; } __attribute__((aligned(8)));
struct uint4 { unsigned x, y, z, w; } __attribute__((aligned(16)));
struct int2 { int x, y; } __attribute__((aligned(8)));
inline int2 make_int2(int x, int y) { return {x, y}; }
struct int4 { int x, y, z, w; } __attribute__((aligned(16)));
struct ulonglong2 { unsigned long long x, y; } __attribute__((aligned(16)));
struct double2 { double x, y; } __attribute__((aligned(16)));

namespace emulated {

using std::uint32_t;
using std::uint64_t;
constexpr int WARP = 32;
constexpr std::size_t STACK = 128 << 10;  // bytes of a fiber's stack, of which few are ever touched

struct Dim { uint32_t x; };

struct Warp {
  uint64_t slot[2][WARP];
  uint32_t ops[WARP];
  uint32_t alive;
};

struct Grid {
  uint32_t blocks, threads;
  std::size_t shared;
  std::atomic<uint32_t> next{0}, arrived{0}, turn{0};
};

struct Fiber {
  Dim thread, block, threads, blocks;
  Warp* warp;
  jmp_buf at;
  ucontext_t first;
  char* stack;
  bool started, done;
};

struct Block {
  Grid* grid;
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  uint32_t alive, arrived = 0, turn = 0;
  uint32_t count[2] = {0, 0};
  jmp_buf scheduler;
  const std::function<void()>* kernel;
  char* shared;
};

inline thread_local Fiber* me = nullptr;
inline thread_local Block* block = nullptr;

inline void yield() {
  if (!_setjmp(me->at)) _longjmp(block->scheduler, 1);
}

inline void release() {
  block->arrived = 0;
  ++block->turn;
  block->count[block->turn & 1] = 0;
}

inline uint32_t sync_count(bool is) {
  uint32_t turn = block->turn;
  block->count[turn & 1] += is;
  if (++block->arrived == block->alive) {
    uint32_t found = block->count[turn & 1];
    release();
    return found;
  }
  while (block->turn == turn) yield();
  return block->count[turn & 1];
}

inline void finish() {
  Fiber* self = me;
  self->done = true;
  self->warp->alive &= ~(1u << (self->thread.x % WARP));
  --block->alive;
  if (block->alive && block->arrived == block->alive) release();
  _longjmp(block->scheduler, 1);
}

inline void begin() {
  (*block->kernel)();
  finish();
}

inline char* new_stack() {
  char* found = (char*)mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) std::abort();
  return found;
}

inline void run_block(Grid& grid, uint32_t number, const std::function<void()>& kernel,
                      std::vector<char*>& stacks) {
  Block here;
  here.grid = &grid;
  here.kernel = &kernel;
  here.alive = grid.threads;
  here.fibers.resize(grid.threads);
  here.warps.resize((grid.threads + WARP - 1) / WARP);
  while (stacks.size() < grid.threads) stacks.push_back(new_stack());
  std::vector<char> shared(grid.shared + 64, char(0xA5));
  here.shared = (char*)((uintptr_t(shared.data()) + 63) & ~uintptr_t(63));
  for (Warp& warp : here.warps) std::memset(&warp, 0, sizeof warp);
  for (uint32_t i = 0; i < grid.threads; ++i) {
    Fiber& f = here.fibers[i];
    f.thread = {i}, f.block = {number}, f.threads = {grid.threads}, f.blocks = {grid.blocks};
    f.warp = &here.warps[i / WARP];
    f.warp->alive |= 1u << (i % WARP);
    f.stack = stacks[i];
    f.started = f.done = false;
  }
  block = &here;
  while (here.alive) {
    for (Fiber& f : here.fibers) {
      if (f.done) continue;
      me = &f;
      if (_setjmp(here.scheduler)) continue;
      if (f.started) _longjmp(f.at, 1);
      f.started = true;
      getcontext(&f.first);
      f.first.uc_stack.ss_sp = f.stack;
      f.first.uc_stack.ss_size = STACK;
      f.first.uc_link = nullptr;
      makecontext(&f.first, begin, 0);
      setcontext(&f.first);
    }
  }
  block = nullptr;
}

inline void launch(uint32_t blocks, uint32_t threads, std::size_t shared, bool together,
                   const std::function<void()>& kernel) {
  Grid grid;
  grid.blocks = blocks, grid.threads = threads, grid.shared = shared;
  uint32_t crew = together ? blocks : std::min(blocks, 3u);
  std::vector<std::thread> runs;
  for (uint32_t i = 0; i < crew; ++i)
    runs.emplace_back([&] {
      std::vector<char*> stacks;
      for (uint32_t number; (number = grid.next++) < blocks;) run_block(grid, number, kernel, stacks);
      for (char* stack : stacks) munmap(stack, STACK);
    });
  for (std::thread& run : runs) run.join();
}

inline void grid_sync() {
  sync_count(false);
  if (me->thread.x == 0) {
    Grid& grid = *block->grid;
    uint32_t turn = grid.turn.load();
    if (++grid.arrived == grid.blocks) {
      grid.arrived = 0;
      ++grid.turn;
    } else {
      while (grid.turn.load() == turn) sched_yield();
    }
  }
  sync_count(false);
}

// What the lanes in `mask` give, in the order of lanes.
inline const uint64_t* gather(uint32_t mask, uint64_t value) {
  Warp& warp = *me->warp;
  uint32_t lane = me->thread.x % WARP, op = warp.ops[lane];
  warp.slot[op & 1][lane] = value;
  ++warp.ops[lane];
  for (int l = 0; l < WARP; ++l)
    while ((mask & warp.alive) >> l & 1 && warp.ops[l] <= op) yield();
  return warp.slot[op & 1];
}

template <typename T>
uint64_t packed(T x) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}

template <typename T>
T unpacked(uint64_t bits) {
  T x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

template <typename... A>
void call(void (*kernel)(A...), void** args) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    kernel(*(std::remove_const_t<A>*)args[I]...);
  }(std::index_sequence_for<A...>{});
}

}  // namespace emulated

#define threadIdx (emulated::me->thread)
#define blockIdx (emulated::me->block)
#define blockDim (emulated::me->threads)
#define gridDim (emulated::me->blocks)

inline void __syncthreads() { emulated::sync_count(false); }
inline void __barrier_sync(unsigned) { emulated::sync_count(false); }
inline int __syncthreads_count(int is) { return emulated::sync_count(is != 0); }
inline int __syncthreads_and(int is) { return emulated::sync_count(is == 0) == 0; }
inline int __syncthreads_or(int is) { return emulated::sync_count(is != 0) != 0; }
inline void __syncwarp(unsigned mask = ~0u) { emulated::gather(mask, 0); }
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_system() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __nanosleep(unsigned) { sched_yield(); emulated::yield(); }

inline unsigned __lane() { return emulated::me->thread.x % 32; }
template <typename T>
T __of_lane(unsigned mask, T x, unsigned lane) {
  return emulated::unpacked<T>(emulated::gather(mask, emulated::packed(x))[lane]);
}

// Lanes exchange in groups of `width` neighbours; one whose partner lies outside keeps its own.
template <typename T>
T __shfl_sync(unsigned mask, T x, int from, int width = 32) {
  return __of_lane(mask, x, (__lane() & ~(width - 1)) + (from & (width - 1)));
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T x, int by, int width = 32) {
  unsigned to = __lane() ^ by;
  return __of_lane(mask, x, to <= (__lane() | (width - 1)) ? to : __lane());
}
template <typename T>
T __shfl_up_sync(unsigned mask, T x, unsigned by, int width = 32) {
  return __of_lane(mask, x, (__lane() & (width - 1)) >= by ? __lane() - by : __lane());
}
template <typename T>
T __shfl_down_sync(unsigned mask, T x, unsigned by, int width = 32) {
  bool inside = (__lane() & (width - 1)) + by < unsigned(width);
  return __of_lane(mask, x, inside ? __lane() + by : __lane());
}
inline unsigned __ballot_sync(unsigned mask, int is) {
  unsigned alive = mask & emulated::me->warp->alive, found = 0;
  const uint64_t* all = emulated::gather(mask, is != 0);
  for (int l = 0; l < 32; ++l)
    if (alive >> l & 1) found |= unsigned(all[l]) << l;
  return found;
}
inline int __any_sync(unsigned mask, int is) { return __ballot_sync(mask, is) != 0; }
inline int __all_sync(unsigned mask, int is) { return __ballot_sync(mask, !is) == 0; }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned y = 0;
  for (int i = 0; i < 32; ++i) y |= (x >> i & 1u) << (31 - i);
  return y;
}
template <typename T> T __ldg(const T* p) { return *p; }
template <typename T> T __ldcg(const T* p) { return *(const volatile T*)p; }
template <typename T> T __ldcs(const T* p) { return *p; }
template <typename T> void __stcg(T* p, T x) { *(volatile T*)p = x; }
template <typename T> void __stcs(T* p, T x) { *p = x; }
inline double __longlong_as_double(long long x) { return emulated::unpacked<double>(x); }
inline long long __double_as_longlong(double x) { return (long long)emulated::packed(x); }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __ull2double_rn(unsigned long long x) { return double(x); }
inline double __ll2double_rn(long long x) { return double(x); }
inline float __double2float_rn(double x) { return float(x); }
inline unsigned __float_as_uint(float x) { return unsigned(emulated::packed(x)); }

template <typename A, typename B> constexpr std::common_type_t<A, B> min(A a, B b) {
  using C = std::common_type_t<A, B>;
  return C(b) < C(a) ? C(b) : C(a);
}
template <typename A, typename B> constexpr std::common_type_t<A, B> max(A a, B b) {
  using C = std::common_type_t<A, B>;
  return C(a) < C(b) ? C(b) : C(a);
}

template <typename T, typename F>
T __changed(T* p, F f) {
  T old = *(volatile T*)p, now;
  do now = f(old);
  while (!__atomic_compare_exchange(p, &old, &now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  return old;
}
template <typename T, typename U>
T atomicAdd(T* p, U x) {
  return __changed(p, [=](T old) { return T(old + T(x)); });
}
template <typename T, typename U>
T atomicSub(T* p, U x) {
  return __changed(p, [=](T old) { return T(old - T(x)); });
}
template <typename T, typename U>
T atomicOr(T* p, U x) {
  return __changed(p, [=](T old) { return T(old | T(x)); });
}
template <typename T, typename U>
T atomicAnd(T* p, U x) {
  return __changed(p, [=](T old) { return T(old & T(x)); });
}
template <typename T, typename U>
T atomicMax(T* p, U x) {
  return __changed(p, [=](T old) { return old < T(x) ? T(x) : old; });
}
template <typename T, typename U>
T atomicMin(T* p, U x) {
  return __changed(p, [=](T old) { return T(x) < old ? T(x) : old; });
}
template <typename T, typename U>
T atomicExch(T* p, U x) {
  return __changed(p, [=](T) { return T(x); });
}
template <typename T, typename U, typename V> T atomicCAS(T* p, U was, V x) {
  return __changed(p, [=](T old) { return old == T(was) ? T(x) : old; });
}
using std::isfinite;
