"""What all tests share: Hypothesis profiles, the devices, the real graphs, Kafka.

Markers tell the tier of a test (pyproject.toml); without one it is quick. A plain pytest leaves out
integration and nightly, as `make test` does: `-m integration` takes the former, `-m ""` all.

LPMA_HYPOTHESIS=quick|long   a dozen examples of each property, or thousands; else 40
LPMA_SOAK=1              what `make soak` sets: tests that bear the marker soak do their long run,
                         and Hypothesis draws as with LPMA_HYPOTHESIS=long
LPMA_DATA=directory      where the real graphs lie, as NAME.npz
LPMA_REQUIRE=data,gpu,kafka,cc,c++,nvrtc,wheel,docs,ray,serve,browser   what must be there: its
                         absence fails a test, which else skips
KAFKA_BOOTSTRAP=host:port     a running Kafka for the tests that do it no harm; else one is started
"""

from __future__ import annotations

import importlib
import os
import secrets
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, settings

from tests.support.turns import turn

if TYPE_CHECKING:
    from tests.support.broker import Broker, Cluster

# A first call compiles, which says nothing about the code under test: no deadlines.
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
_COMMON: dict[str, Any] = {"deadline": None, "suppress_health_check": _SLOW, "print_blob": True}
settings.register_profile("quick", max_examples=12, stateful_step_count=12, **_COMMON)
settings.register_profile("test", max_examples=40, stateful_step_count=12, **_COMMON)
settings.register_profile("long", max_examples=10_000, stateful_step_count=30, **_COMMON)
SOAK = os.environ.get("LPMA_SOAK") == "1"
settings.load_profile("long" if SOAK else os.environ.get("LPMA_HYPOTHESIS", "test"))


NO_DATA = "LPMA_DATA names no directory of real graphs"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# Tests that import what a machine with a GPU need not have. They are told, and left out there.
_IMPORTING = {
    "kafka": ["ingest/cli/test_kafka*.py", "ingest/cluster/test_shard_kafka.py",
              "ingest/feed/test_feed_kafka.py", "ingest/queries/test_client_kafka.py",
              "ingest/service/test_updates_kafka.py", "ingest/sources/test_kafka_*.py",
              "ingest/past/test_running.py", "ingest/test_metrics.py",
              "ingest/test_millions.py", "ingest/test_results_kafka.py", "ingest/test_secrets.py",
              "ingest/test_table_kafka.py", "ingest/test_window_kill.py"],
    "prometheus_client": ["ingest/test_metrics.py"],
    "serve": ["ingest/service/*", "ingest/cli/test_serve.py"],
    "frames": ["ingest/cli/test_export.py", "ingest/sources/test_refusals_of_files.py",
               "lpma/interop/test_*.py", "lpma/test_object.py", "lpma/test_tables_out.py",
               "lpma/test_times.py"],
}  # fmt: skip
_MODULES = {
    "kafka": ["kafka", "crc32c", "lz4", "snappy", "zstandard"],
    "prometheus_client": ["httptools", "prometheus_client", "uvicorn"],
    "serve": ["httptools", "prometheus_client", "starlette", "uvicorn"],
    "frames": ["duckdb", "igraph", "IPython", "networkx", "pandas", "polars", "pyarrow"],
}
_REQUIRED = os.environ.get("LPMA_REQUIRE", "").split(",")
_ABSENT = [
    name for name in _IMPORTING if name not in _REQUIRED and not all(map(find_spec, _MODULES[name]))
]
collect_ignore_glob = [pattern for name in _ABSENT for pattern in _IMPORTING[name]]


# Without CuPy no test can use a device, and thousands would say so: they are left out.
_HAS_CUPY = find_spec("cupy") is not None or "gpu" in _REQUIRED
CUDA = [pytest.param("cuda", marks=pytest.mark.gpu)] if _HAS_CUPY else []


# What tests are skipped without: one of these programs, and who needs it.
_PROGRAMS = {
    ("java",): "a real Kafka",
    ("cc", "gcc"): "power cuts, the fence",
    ("g++",): "CUDA under emulation",
    BROWSERS: "the page in a browser",
}


def _not_here() -> list[str]:
    found = [
        f"{programs[0]} ({tests})"
        for programs, tests in _PROGRAMS.items()
        if not any(map(shutil.which, programs))
    ]
    if not os.environ.get("LPMA_DATA"):
        found.append("LPMA_DATA (real graphs)")
    if find_spec("ray") is None:
        found.append("Ray (a cluster on it)")
    return found


def pytest_report_header() -> list[str]:
    told = [
        f"{name} cannot be imported: {', '.join(_IMPORTING[name])} are left out" for name in _ABSENT
    ]
    if absent := _not_here():
        told.append(f"not here, and what is skipped without: {', '.join(absent)}")
    return told if _HAS_CUPY else [*told, "CuPy cannot be imported: tests of a device are left out"]


# What a test takes, or the folder it is in, tells its tier.
_INTEGRATION = ("ray_cluster", "kafka", "broker", "chromium")
_SYSTEM = tuple(f"{Path(__file__).parent}/ingest/{name}/" for name in ("cli", "cluster", "service"))


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    for item in items:
        if item.get_closest_marker("nightly") is None and _needed(item) is not None:
            item.add_marker("integration")
        if os.fspath(item.path).startswith(_SYSTEM):
            item.add_marker("system")
    if not _HAS_CUPY:
        gone = [item for item in items if item.get_closest_marker("gpu")]
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if not item.get_closest_marker("gpu")]
    yield
    items.sort(key=_turn_of)


def _needed(item: pytest.Item) -> str | None:
    """What it takes that makes it integration."""
    if item.get_closest_marker("ray"):
        return "ray_cluster"
    taken = set(getattr(item, "fixturenames", ()))
    return next((name for name in _INTEGRATION if name in taken), None)


def _turn_of(item: pytest.Item) -> int:
    """Processes that share the tests begin with a stretch of the list each: what one of them starts
    for many tests comes first and in one stretch, so that the others need not start it too."""
    if item.get_closest_marker("all_cores"):
        return 0
    needed = _needed(item)
    return 1 + len(_INTEGRATION) if needed is None else 1 + _INTEGRATION.index(needed)


# What a process inherits from whoever starts the tests, and tests must not depend on: under
# nohup and in scripts' backgrounds signals are ignored, and shells differ in the rest.
_INHERITED = (
    "COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS", "LANGUAGE", "LINES", "LPMA_COMPILE", "LPMA_DEVICE",
    "LPMA_THREADS", "MPLBACKEND", "NO_COLOR", "OMP_NUM_THREADS", "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONOPTIMIZE", "PYTHONUTF8", "PYTHONWARNINGS",
    "PY_COLORS", "TERM", "TERMINAL_WIDTH",
)  # fmt: skip
_PROXIES = ("all_proxy", "http_proxy", "https_proxy", "no_proxy")


def pytest_addoption() -> None:
    """The first hook that is called: before other folders' conftest.py import what reads these."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_IGN:
            usual = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
            signal.signal(number, usual)
    os.umask(0o022)
    os.environ.update(TZ="UTC", LC_ALL="C.UTF-8")
    time.tzset()
    for proxy in {*_PROXIES, *map(str.upper, _PROXIES)} & os.environ.keys():
        os.environ[f"TESTS_{proxy}"] = os.environ.pop(proxy)  # for pip, see `proxies`
    settings_of_numba = {name for name in os.environ if name.startswith("NUMBA_")}
    for variable in {*_INHERITED, *map(str.upper, _INHERITED), *settings_of_numba}:
        if variable != "NUMBA_CACHE_DIR":
            os.environ.pop(variable, None)


def proxies() -> dict[str, str]:
    """The proxies of whoever started the tests, for a program that needs the package index."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("TESTS_")}
    return {name.removeprefix("TESTS_"): value for name, value in kept.items()}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Why tests were skipped, each reason once. Under LPMA_AGAIN, which `.ci/run` sets to repeat
    what failed: what passes now."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped {count}: {reason}")
    if os.environ.get("LPMA_AGAIN"):
        for report in terminalreporter.stats.get("passed", ()):
            terminalreporter.write_line(f"flaky: {report.nodeid}")


def missing(what: str, reason: str) -> NoReturn:
    """Skip the test for want of `what`, or fail it where LPMA_REQUIRE names that."""
    if what in _REQUIRED:
        pytest.fail(f"LPMA_REQUIRE asks for {what}: {reason}")
    pytest.skip(reason)


def soak(ci: int, long: int) -> int:
    """How many rounds a test that bears the marker soak does: `ci` as a rule, where 0 skips the
    test, and `long` under `make soak`."""
    if SOAK:
        return long
    if ci == 0:
        pytest.skip("a test for `make soak` alone")
    return ci


def told_by_soak(capsys: pytest.CaptureFixture[str], line: str) -> None:
    """Print what a test did and checked: past pytest under `make soak`, else as any output."""
    if not SOAK:
        print(f"\n{line}")
        return
    with capsys.disabled():
        print(f"\n{line}", flush=True)


def real_graph(name: str) -> dict[str, npt.NDArray[Any]]:
    """The columns of a real graph: src, dst, and where the source has them t and w."""
    directory = os.environ.get("LPMA_DATA")
    if not directory:
        missing("data", NO_DATA)
    path = Path(directory) / f"{name}.npz"
    if not path.is_file():
        missing("data", f"{path} is not there: see LPMA_DATA")
    with np.load(path) as columns:
        return {key: columns[key] for key in columns.files}


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the kernels before the first test, so that tests are of these, not of what serves
    until they are there. Of processes that share the tests, one compiles and the others wait."""
    from lpma.cpu import compiling, ready

    compiling.compile_all()
    ready.note_compiled()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before each test, whatever ran before it: kernels keep the CPU's stores, unless the test has
    the parameter "numpy" (tests/lpma/conftest.py)."""
    from lpma.backend import use_kernels

    drawn = getattr(item, "callspec", None)  # of a test with parameters
    use_kernels(drawn is None or drawn.params.get("device") != "numpy")


@pytest.fixture(autouse=True)
def _turn(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Ray's time-outs are not for the load of a test that compiles all kernels."""
    alone, has_ray = (request.node.get_closest_marker(name) for name in ("all_cores", "ray"))
    if alone or has_ray:
        with turn(tmp_path_factory, alone is not None):
            yield
    else:
        yield


@pytest.fixture(scope="session", params=["cpu", *CUDA])
def device(request: pytest.FixtureRequest) -> str:
    """Every device the store can be on: one test body for all."""
    import lpma

    name: str = request.param
    try:
        lpma.Graph(device=name)
    except lpma.DeviceError as error:
        missing("gpu", f"device {name}: {error}")
    return name


@pytest.fixture(scope="session")
def cupy() -> Any:
    """CuPy with a CUDA device. For tests of what only a device has: they bear the marker gpu."""
    import lpma

    try:
        lpma.Graph(device="cuda")
    except lpma.DeviceError as error:
        missing("gpu", str(error))
    return importlib.import_module("cupy")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium that Playwright drives, for tests of the page."""
    if find_spec("playwright") is None:
        missing("browser", "Playwright is not installed: pip install playwright")
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    missing("browser", "there is no Chromium: apt-get install chromium")


@pytest.fixture(scope="session")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The module `ray`, connected to a Ray that was started for the tests, of one node. Actors that
    a test leaves are its own to end."""
    if find_spec("ray") is None:
        missing("ray", "Ray is not installed: pip install ray")
    token = tmp_path_factory.mktemp("ray") / "token"  # or Ray would write one into the home folder
    token.write_text(secrets.token_hex(32))
    os.environ["RAY_AUTH_TOKEN_PATH"] = os.fspath(token)
    import ray

    try:
        ray.init(
            "local", num_cpus=8, include_dashboard=False, object_store_memory=150 << 20,
            log_to_driver=False, namespace="lpma",
            runtime_env={"env_vars": {"PYTHONPATH": os.fspath(Path(__file__).parents[1])}},
        )  # fmt: skip
    except (OSError, RuntimeError, ConnectionError) as error:
        missing("ray", f"Ray does not start: {error}")
    yield ray
    ray.shutdown()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A Kafka for all tests: KAFKA_BOOTSTRAP, else a broker of their own. Not to be hurt; topics
    are made with `kafka.topic()`."""
    from tests.support.broker import Cluster

    running = os.environ.get("KAFKA_BOOTSTRAP")
    if running:
        with Cluster(running) as cluster:
            yield cluster
        return
    with (
        _started(tmp_path_factory.mktemp("kafka")) as broker,
        Cluster(broker.bootstrap, broker.sasl_bootstrap) as cluster,
    ):
        yield cluster


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker of the test's own: to be stopped, killed, stalled."""
    with _started(tmp_path / "kafka") as broker:
        yield broker


def _started(directory: Path) -> Broker:
    from tests.support.broker import Broker, Unavailable

    try:
        broker = Broker(directory)
        broker.start()
    except Unavailable as error:
        missing("kafka", str(error))
    return broker
