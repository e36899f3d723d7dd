// Clusters: blocks that can write to each other's shared memory and have a barrier of their own.
//
// These are the instructions that CUDA's cooperative groups come to. Their header is large: a kernel
// that includes it takes up to a second more to compile.
//
// Requires: compute capability 9.0; a kernel with __cluster_dims__.
#pragma once
#include "lpma/cuda/types.cuh"

// The number of this block in its cluster.
__device__ __forceinline__ u32 cluster_rank() {
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// The barrier over the threads of the cluster, in two halves: after cluster_wait() a thread sees
// what each thread of the cluster wrote before its cluster_arrive(). Each thread calls them in turns.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait;" ::: "memory");
}

__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

// Where block `rank` of the cluster has what lies here at `address`, in shared memory.
template <typename T>
__device__ __forceinline__ T* in_block(T* address, u32 rank) {
  u64 there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(address), "r"(rank));
  return (T*)there;
}
