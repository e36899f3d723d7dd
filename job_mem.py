import sys, time, numpy as np
t00=time.time()
from unittest.mock import patch
import lpma.backend.layout as L
import lpma, cupy
from lpma.backend.cuda import reserved
def say(*a): print(f"[{time.time()-t00:5.1f}]", *a, flush=True)
say("supported", reserved.is_supported(0), "page", reserved._page_bytes(0), cupy.cuda.runtime.getDeviceProperties(0)["name"])
rng=np.random.default_rng(0)
what=sys.argv[1]
def reserved_test():
    def taken():
        cupy.get_default_memory_pool().free_all_blocks()
        return -cupy.cuda.runtime.memGetInfo()[0]
    n=1<<22; a=reserved.level_column(n,np.int64,1); del a
    before=taken(); part=n*8//4
    c=reserved.level_column(n,np.int64,1); say("1 part", (taken()-before)/part)
    for p in (2,3,4):
        c[:n//4*(p-1)]=p; reserved.back(c,p); say(p,(taken()-before)/part, bool((c[:n//4*(p-1)]==p).all()))
    c[:]=7; say(int(c.sum())==7*n); del c; say("freed", (taken()-before)/part)
def correct():
    with patch.object(L,"PARTED_SLOTS",1):
        for strat in ("bottom-up","top-down"):
            g=lpma.Graph(device="cuda",strategy=strat,global_merge="never" if strat=="bottom-up" else "auto"); ref=set(); grew=set()
            for i in range(60):
                n=int(rng.integers(1,700)); a=rng.integers(0,150,(2,n)); ins= rng.random()<.85 if i<40 else rng.random()<.15
                (g.insert if ins else g.delete)(*a); (ref.update if ins else ref.difference_update)(map(tuple,a.T.tolist()))
                try: g.check()
                except Exception as e: say("CHECK", strat, i, ins, n, g._stores.out.segments.size, repr(e)); break
                if g.num_edges!=len(ref): say("EDGES", strat,i,g.num_edges,len(ref)); break
                grew.add(g._stores.out.segments.size)
            s=g.snapshot(); got=set(zip(np.repeat(np.arange(s.num_vertices),np.diff(cupy.asnumpy(s.indptr))).tolist(), cupy.asnumpy(s.indices).tolist()))
            say(strat, got==ref, len(grew), g._stores.out.segments.size, g.stats().expansions, g.stats().shrinks)
def load(total,size,ids,until):
    gs=[lpma.Graph(device="cuda") for _ in range(2)]
    for s,_ in gs[0]._stores.all: s.backend.parted_from=lambda size: 99
    T=[[],[]]; M=[[],[]]; K=[]; done=0
    while done<total and time.time()-t00<until:
        n=size if done>=total//2 else 1000000
        a=rng.integers(0,1<<ids,(2,n),dtype=np.uint32); p=lpma.pinned_batch(n) if hasattr(lpma,"pinned_batch") else None
        if done==0: say("pinned", type(p))
        b=[cupy.asarray(x) for x in a]; cupy.cuda.runtime.deviceSynchronize()
        for i in ((0,1) if (done//size)%2 else (1,0)):
            t=time.perf_counter(); gs[i].insert(*b); cupy.cuda.runtime.deviceSynchronize(); t=time.perf_counter()-t
            if n==size: T[i].append(t*1e3); M[i].append(gs[i].nbytes/gs[i].num_edges)
        if n==size: K.append(gs[0].num_edges)
        done+=n
    T=np.array(T);M=np.array(M);K=np.array(K)
    say(f"batch {size}: {K[0]:.3g}..{K[-1]:.3g} edges, n={len(K)}: max B/edge whole {M[0].max():.2f} parts {M[1].max():.2f}, median {np.median(M[0]):.1f} {np.median(M[1]):.1f}; ms median {np.median(T[0]):.3f} {np.median(T[1]):.3f} pair ratio {np.median(T[1]/T[0]):.3f} mean {T[0].mean():.3f} {T[1].mean():.3f}, slowest {T[0].max():.2f} {T[1].max():.2f}, p90 {np.percentile(T[0],90):.3f} {np.percentile(T[1],90):.3f}")
    for g in gs: say([int(x) for x in g.stats().segments_by_layer[:10]], g._stores.out.segments.size, "buffers MB", g._stores.out.backend.buffer_bytes/1e6)
    out=[]
    for i in (0,1):
        cupy.get_default_memory_pool().free_all_blocks(); a=cupy.cuda.runtime.memGetInfo()[0]
        n=gs[0].num_edges; own=gs[0].nbytes; gs.pop(0); import gc; gc.collect(); cupy.cuda.runtime.deviceSynchronize(); cupy.get_default_memory_pool().free_all_blocks()
        out.append(((cupy.cuda.runtime.memGetInfo()[0]-a)/n, own/n))
    say("device bytes an edge given back when graph goes, counted: whole, parts", out)
if "r" in what: reserved_test()
if "c" in what: correct()
if "l" in what: load(int(sys.argv[2]),int(sys.argv[3]),24,float(sys.argv[4]))
