"""The experiments by name. A module is imported when its experiment is run: each needs different
packages."""

from __future__ import annotations

import importlib

from .report import Report, Setting

# "module:function", in the order in which `all` runs them.
ON_CPU = {
    "first-use": "stores.first_use:first_use",
    "updates": "stores.updates:updates",
    "sets": "stores.sets:sets",
    "mixed": "stores.mixed:mixed",
    "queries": "stores.queries:queries",
    "busy": "stores.busy:busy",
    "windows": "stores.windows:windows",
    "views": "stores.views:views",
    "csr": "stores.csr:csr",
    "small": "stores.small:small",
    "latency": "papers.lpma.latency:latency",
    "figure16-cpu": "papers.lpma.opera:figure16_cpu",
    "load": "streams.load:load",
    "commands": "streams.commands:commands",
    "live-queries": "streams.live_queries:live_queries",
    "flood": "streams.flood:flood",
    "http": "streams.http:service",
    "live-page": "streams.live_page:page",
    "memory": "stores.memory:memory",
    "names": "stores.names:names",
    "expansion": "papers.lpma.expansion:expansion",
    "checkpoint": "streams.checkpoint:checkpoint",
    "as-of": "streams.as_of:as_of",
    "results": "streams.results:results",
    "records": "streams.records:records",
    "rows": "streams.rows:rows",
    "kafka": "streams.kafka:kafka",
    "cluster": "cluster.rates:cluster",
    "cluster-model": "cluster.predicted:cluster_model",
    "structure": "algorithms.structure:structure",
    "live": "algorithms.live:live",
    "truss": "papers.truss:truss",
    "kcore-table4": "papers.kcore:table4",
    "butterflies": "algorithms.bicliques:butterflies",
    "tracker": "algorithms.tracker:tracker",
    "bicliques": "papers.biclique:on_cpu",
}
# Each runs the programs that the machine can: those for the CPU, for one device, for several.
ON_EITHER = {
    "networkx": "algorithms.networkx:networkx",
    "diversity-table2": "papers.diversity:table2",
    "diversity-table3": "papers.diversity:table3",
    "diversity-table4": "papers.diversity:table4",
    "diversity-table5": "papers.diversity:table5",
    "diversity-figure8": "papers.diversity:figure8",
    "diversity-figure9": "papers.diversity:figure9",
    "diversity-figure10": "papers.diversity:figure10",
}
# On a CUDA device, in the order in which `gpu` runs them. Figure numbers are those of the store's
# paper.
ON_GPU = {
    "gpu-updates": "stores.gpu.updates:gpu_updates",
    "gpu-sets": "stores.sets:gpu_sets",
    "gpu-scaling": "stores.gpu.scaling:gpu_scaling",
    "figure8": "papers.lpma.growth:figure8",
    "figure9": "papers.lpma.growth:figure9",
    "figure10": "papers.lpma.growth:figure10",
    "figure11": "papers.lpma.growth:figure11",
    "figure12": "papers.lpma.batches:figure12",
    "figure13": "papers.lpma.growth:figure13",
    "figure14": "papers.lpma.batches:figure14",
    "figure16": "papers.lpma.opera:figure16",
    "gpu-first-use": "stores.first_use:gpu_first_use",
    "gpu-queries": "stores.gpu.queries:gpu_queries",
    "gpu-busy": "stores.busy:gpu_busy",
    "gpu-vertices": "stores.gpu.vertices:gpu_vertices",
    "gpu-windows": "stores.windows:gpu_windows",
    "gpu-views": "stores.views:gpu_views",
    "gpu-memory": "stores.gpu.memory:gpu_memory",
    "gpu-as-of": "streams.as_of:gpu_as_of",
    "gpu-pipeline": "streams.gpu_pipeline:gpu_pipeline",
    "gpu-results": "streams.results:gpu_results",
    "gpu-traversal": "algorithms.traversal:gpu_traversal",
    "gpu-pagerank": "algorithms.ranks:gpu_pagerank",
    "gpu-tracker-pagerank": "algorithms.ranks:gpu_tracker_pagerank",
    "gpu-paths": "algorithms.paths:gpu_paths",
    "gpu-structure": "algorithms.gpu_structure:gpu_structure",
    "gpu-triangles": "algorithms.triangles:gpu_triangles",
    "gpu-truss": "papers.truss:gpu_truss",
    "gpu-diversity": "algorithms.diversity:gpu_diversity",
    "kcore-table2": "papers.kcore:table2",
    "kcore-table3": "papers.kcore:table3",
    "kcore-table5": "papers.kcore:table5",
    "gpu-tracker": "algorithms.tracker:gpu_tracker",
    "gpu-bicliques": "algorithms.bicliques:gpu_bicliques",
    "gpu-cluster": "cluster.gpu:gpu_cluster",
    "gpu-cluster-model": "cluster.predicted:gpu_cluster_model",
    "biclique-figure7": "papers.biclique:figure7",
    "biclique-figure8": "papers.biclique:figure8",
    "biclique-figure9": "papers.biclique:figure9",
    "biclique-figure10": "papers.biclique:figure10",
    "biclique-table3": "papers.biclique:table3",
    "biclique-table4": "papers.biclique:table4",
    "biclique-table5": "papers.biclique:table5",
}
# In no group.
BY_ITSELF = {
    "headline": "headline:headline",
    "page": "page:page",
    "compare": "compare:compare",
}

KNOWN = ON_CPU | ON_EITHER | ON_GPU | BY_ITSELF
GROUPS = {"all": (*ON_CPU, *ON_EITHER), "gpu": (*ON_GPU, *ON_EITHER)}


def chosen(names: list[str]) -> list[str]:
    """Groups taken apart."""
    return [name for given in names for name in GROUPS.get(given, (given,))]


def run(name: str, setting: Setting) -> list[Report]:
    module, function = KNOWN[name].split(":")
    found = getattr(importlib.import_module(f".{module}", __package__), function)(setting)
    return found if isinstance(found, list) else [found]
