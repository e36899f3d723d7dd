"""`lpma doctor`: what this machine can do."""

from __future__ import annotations

import importlib
import os
import platform
from pathlib import Path
from typing import Annotated, Any

import typer

from lpma.dependencies import how_to_install
from lpma.display.words import size_of

from ..errors import SourceError
from ..registry.client import SchemaRegistry
from ._console import JsonOption, failing_in_one_line, report
from ._options import KafkaConfig, SchemaRegistryConfig, schema_registry

REQUIRED = ("numpy", "numba", "scipy", "msgpack", "matplotlib", "rich", "typer")
OPTIONAL = {
    "networkx": "to_networkx()",
    "pyarrow": "to_arrow(), write_parquet()",
    "kafka-python": "Kafka streams",
    "fastavro": "Avro, of --schema-registry",
    "prometheus-client": "outputs.metrics",
}


@failing_in_one_line
def doctor(
    kafka: Annotated[
        str | None,
        typer.Option(
            "--kafka", metavar="HOST:PORT,…", help="Check whether these brokers can be reached."
        ),
    ] = None,
    kafka_config: KafkaConfig = None,
    registry: Annotated[
        str | None,
        typer.Option(
            "--schema-registry", metavar="URL",
            help="Check whether this schema registry can be reached.",
        ),
    ] = None,
    registry_config: SchemaRegistryConfig = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Say what this machine can do: libraries, threads, GPU, Kafka, memory, directories.

    Exit status 1 if something the store needs is missing, or Kafka or a schema registry cannot be
    reached."""
    if kafka is None and kafka_config is not None:
        raise typer.BadParameter("--kafka-config needs it", param_hint="--kafka")
    asked = schema_registry(registry, registry_config)
    document = examine(kafka, kafka_config, asked)
    report(as_json, document, "this machine", _readable(document))
    for problem in document["problems"]:
        typer.echo(f"lpma: {problem}", err=True)
    if document["problems"]:
        raise typer.Exit(1)


def examine(
    kafka: str | None = None, config: Path | None = None, registry: SchemaRegistry | None = None
) -> dict[str, Any]:
    """Everything `doctor` reports, as plain values. kafka: brokers to reach, with the settings in
    the file `config`. registry: one to reach."""
    import lpma
    from lpma.cuda.archive import kernel_facts
    from lpma.host import available_memory_bytes, processors

    from .. import datasets, installation

    problems = installation.problems()
    packages = {name: _version(name) for name in (*REQUIRED, *OPTIONAL)}
    problems += [f"{name} is missing: pip install {name}" for name in REQUIRED
                 if packages[name] is None]  # fmt: skip
    folders = {name: installation.imported_from(name) for name in installation.NAMES}
    data = datasets.data_directory()
    cache = datasets.cache_directory()
    here = [] if data is None else [name for name in datasets.names()
                                    if (data / f"{name}.npz").is_file()]  # fmt: skip
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "lpma": lpma.__version__,
        "folders": {name: folder and str(folder) for name, folder in folders.items()},
        "packages": packages,
        "cpus": processors(),
        "threads": _threads(problems),
        "kernels": _kernels(problems),
        "gpu": _gpu(),
        "gpu_kernels": kernel_facts(),
        "kafka": _kafka(kafka, config, problems),
        "schema_registry": _registry(registry, problems),
        "memory_bytes": available_memory_bytes(),
        "data_directory": None if data is None else str(data),
        "datasets_here": here,
        "cache_directory": str(cache),
        "cache_writable": _writable(cache),
        "problems": problems,
    }  # fmt: skip


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _threads(problems: list[str]) -> int | None:
    """How many threads the store uses."""
    try:
        return int(importlib.import_module("lpma.cpu.threads").THREADS)
    except ImportError as error:
        problems.append(f"the store's CPU backend cannot be imported: {error}")
        return None


def _kernels(problems: list[str]) -> dict[str, Any]:
    """Where the CPU's compiled kernels are kept, how large they are, and whether all are there."""
    from lpma.cpu import cache, compiling

    directory = cache.directory()
    if cache.is_temporary(directory):
        problems.append(
            "compiled kernels cannot be kept: set LPMA_CACHE to a directory that can be written"
        )
    return {
        "directory": str(directory),
        "bytes": cache.size_bytes(),
        "compiled": compiling.is_compiled(),
    }


def _writable(path: Path) -> bool:
    """Whether files can be made in `path`, or it can be made."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path.is_dir() and os.access(path, os.W_OK | os.X_OK)


def _kafka(bootstrap: str | None, config: Path | None, problems: list[str]) -> dict[str, Any]:
    """Whether Kafka's client is installed, and what the brokers report if any are named."""
    from ..sources.kafka.config import read_settings

    kafka: dict[str, Any] = {"usable": False, "why": None, "codecs": {}, "bootstrap": bootstrap,
                             "cluster": None, "brokers": [], "topics": []}  # fmt: skip
    try:
        client = importlib.import_module("ingest.sources.kafka.client")
        kafka |= {"usable": True, "codecs": client.codecs()}
        if bootstrap is not None:
            settings = None if config is None else read_settings(config)
            kafka |= client.probe(bootstrap, settings)
    except SourceError as error:
        kafka["why"] = str(error)
        if bootstrap is not None:
            problems.append(str(error))
    return kafka


def _registry(registry: SchemaRegistry | None, problems: list[str]) -> dict[str, Any]:
    """Whether records of Avro can be read, and whether the registry answers if one is named."""
    found: dict[str, Any] = {"avro": _version("fastavro") is not None, "url": None, "why": None}
    if registry is None:
        return found
    found |= {"url": registry.url, "subjects": None}
    try:
        found |= registry.probe()
    except SourceError as error:
        found["why"] = str(error)
        problems.append(str(error))
    return found


def _describe_registry(registry: dict[str, Any]) -> str:
    reads = "JSON and Avro are read" if registry["avro"] else (
        f"JSON is read, Avro is not: {how_to_install('registry')}"
    )  # fmt: skip
    if registry["url"] is None:
        return f"{reads}; --schema-registry URL checks whether one answers"
    if registry["why"] is not None:
        return f"none: {registry['why']}; {reads}"
    return f"{registry['url']} answers, {registry['subjects']} subjects; {reads}"


def _describe_kafka(kafka: dict[str, Any]) -> str:
    if kafka["why"] is not None:
        return f"none: {kafka['why']}"
    if kafka["bootstrap"] is None:
        missing = [name for name, usable in kafka["codecs"].items() if not usable]
        lacks = f" without {', '.join(missing)}: {how_to_install('kafka')}" if missing else ""
        return f"its client is installed{lacks}; --kafka HOST:PORT checks whether brokers answer"
    return (
        f"cluster {kafka['cluster']}, brokers {', '.join(kafka['brokers'])}, "
        f"{len(kafka['topics'])} topics: {', '.join(kafka['topics'][:10])}"
    )


def _gpu() -> dict[str, Any]:
    """What the GPUs can do for a graph, or why they cannot; and the device that "auto" is."""
    from lpma.backend import no_cuda_here, open_backend
    from lpma.dependencies import how_to_install
    from lpma.host import has_nvidia_driver

    gpu: dict[str, Any] = {"usable": False, "why": None, "cupy": None, "devices": [], "auto": "cpu"}
    if (why := no_cuda_here()) is not None:
        return {**gpu, "why": why}
    try:
        gpu["cupy"] = importlib.import_module("cupy").__version__
        probe = importlib.import_module("lpma.backend.cuda.launch.probe")
    except ImportError as error:
        hint = how_to_install("cuda12", "cuda13") if has_nvidia_driver() else "no NVIDIA driver"
        return {**gpu, "why": f"CuPy cannot be imported ({error}); {hint}"}
    try:
        gpu["devices"] = probe.devices()
    except RuntimeError as error:  # CuPy's errors of the driver are of this type
        return {**gpu, "why": f"no CUDA device answers ({error})"}
    usable = [device for device in gpu["devices"] if device["why_not"] is None]
    gpu["usable"] = bool(usable)
    if not usable:
        gpu["why"] = gpu["devices"][0]["why_not"] if gpu["devices"] else "no device"
    else:
        gpu["auto"] = open_backend("auto")[0]
    return gpu


def _describe_kernels(kernels: dict[str, Any]) -> str:
    state = "all are there" if kernels["compiled"] else "not all are there: `lpma compile`"
    return f"{kernels['directory']}, {size_of(kernels['bytes'])}; {state}"


def _describe_gpu(gpu: dict[str, Any]) -> str:
    if not gpu["usable"]:
        return f"none: {gpu['why']}"
    return "; ".join(
        f"{device['device']}: {device['name']}, {size_of(device['memory_bytes'])}"
        + ("" if device["why_not"] is None else f" (not usable: {device['why_not']})")
        for device in gpu["devices"]
    )


def _describe_gpu_kernels(kernels: dict[str, Any]) -> str:
    shipped, cache = kernels["shipped"], kernels["cache"]
    compiled = f"compiled here: {cache['path']}, {size_of(cache['bytes'])}"
    if not shipped["modules"]:
        return f"none are shipped; {compiled}"
    older = shipped["modules"] - shipped["current"]
    return (
        f"shipped for {', '.join(shipped['architectures'])}, {size_of(shipped['bytes'])}"
        + (f", {older} of {shipped['modules']} older than the sources" if older else "")
        + f"; {compiled}"
    )


def _readable(document: dict[str, Any]) -> dict[str, Any]:
    rows: dict[str, Any] = {
        "python": f"{document['python']} on {document['system']}",
        "lpma": f"{document['lpma']} in {document['folders']['lpma']}",
    }
    for name, found in document["packages"].items():
        purpose = f" ({OPTIONAL[name]})" if name in OPTIONAL else ""
        rows[name] = found or f"not installed{purpose}"
    gpu, memory = document["gpu"], document["memory_bytes"]
    return {
        **rows,
        "CPUs, threads": f"{document['cpus']}, {document['threads']}",
        "GPU": _describe_gpu(gpu),
        "CuPy": gpu["cupy"],
        "--device auto": gpu["auto"]
        + (": updates, queries and snapshots run there" if gpu["usable"] else ""),
        "Kafka": _describe_kafka(document["kafka"]),
        "schema registry": _describe_registry(document["schema_registry"]),
        "free memory": None if memory is None else size_of(memory),
        "compiled kernels": _describe_kernels(document["kernels"]),
        "GPU kernels": _describe_gpu_kernels(document["gpu_kernels"]),
        "LPMA_DATA": document["data_directory"],
        "datasets there": len(document["datasets_here"]),
        "cache": document["cache_directory"]
        + ("" if document["cache_writable"] else " (not writable: set LPMA_CACHE)"),
    }
