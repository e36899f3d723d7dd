"""The compose files and the manifest for Kubernetes hold together, and call commands that exist.

No Docker and no cluster is needed: they are parsed, and each command line in them is read by the
very command that it calls."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from ingest.cli import app
from ingest.cluster.niceness import VARIABLE
from tests.conftest import missing

ROOT = Path(__file__).parents[2]
yaml = pytest.importorskip("yaml")


def compose(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / name).read_text())
    return found


def kuberay() -> tuple[dict[str, Any], dict[str, Any]]:
    cluster, job = yaml.safe_load_all((ROOT / "docs" / "guide" / "kuberay.yaml").read_text())
    return cluster, job


def lines(script: str) -> list[list[str]]:
    """The command lines of a shell script, in words."""
    joined = script.replace("\\\n", " ")
    return [shlex.split(line.replace("exec ", "")) for line in joined.splitlines() if line.strip()]


def called(words: list[str]) -> dict[str, Any]:
    """The arguments that the command of `lpma` reads in such a line. It is not run."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("lpma", words[1:], resilient_parsing=False)
    rest = [*context._protected_args, *context.args]
    while hasattr(command, "commands"):
        command = command.get_command(context, rest[0])
        context = command.make_context(rest[0], rest[1:], parent=context)
        rest = [*getattr(context, "_protected_args", []), *context.args]
    found: dict[str, Any] = context.params
    return found


def check_ray_start(words: list[str]) -> dict[str, Any]:
    """What `ray start` reads in such a line."""
    scripts = missing_ray()
    assert words[:2] == ["ray", "start"]
    found: dict[str, Any] = scripts.start.make_context("start", words[2:]).params
    return found


def missing_ray() -> Any:
    try:
        from ray.scripts import scripts
    except ImportError:
        missing("ray", "Ray is not installed: pip install '.[ray]'")
    return scripts


# Compose -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["compose.yaml", "compose-cluster.yaml"])
def test_services_need_what_is_there(name: str) -> None:
    found = compose(name)
    for service in found["services"].values():
        assert set(service.get("depends_on", {})) <= set(found["services"])
        volumes = {volume.split(":")[0] for volume in service.get("volumes", [])}
        assert volumes <= set(found["volumes"])
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), "nobody else is to reach it unasked"
        assert ("image" in service) or (ROOT / "Dockerfile").is_file()


def test_both_run_the_same_kafka() -> None:
    one, other = (compose(name)["services"] for name in ("compose.yaml", "compose-cluster.yaml"))
    assert one["kafka"] == other["kafka"]
    assert one["topics"]["image"] == other["topics"]["image"] == one["kafka"]["image"]


def test_the_store_of_compose() -> None:
    words = compose("compose.yaml")["services"]["store"]["command"].split()
    assert called(["lpma", *words])["kafka"] == "kafka:19092"


def test_the_cluster_of_compose() -> None:
    services = compose("compose-cluster.yaml")["services"]
    store, workers = services["store"], [services[f"worker-{i}"] for i in (1, 2, 3)]
    head, run = lines(store["command"][0])
    given = called(run)
    assert given["source"] == f"kafka://{brokers_of(services['kafka'])}"
    assert given["engine"] == "ray"
    assert given["shards"] == len(workers)
    partitions = re.findall(r"--partitions (\d+)", services["topics"]["command"][0])
    assert [int(count) % given["shards"] for count in partitions] == [0]
    for needed in (given["topic"], given["queries"], "replies", "dead-letters"):
        assert re.search(rf"\bfor topic in .*\b{needed}\b", services["topics"]["command"][0])
    for service in (store, *workers):
        mounted = {volume.split(":")[1] for volume in service["volumes"]}
        assert {str(given["checkpoint"]), given["keep"]} <= mounted
        assert service["image"] == store["image"]
        assert service["build"] == store["build"]
        assert service["environment"] == {"RAY_AUTH_MODE": "disabled", VARIABLE: "0"}
    started = check_ray_start(head)
    assert (started["head"], started["num_cpus"]) == (True, 0)
    for worker in workers:
        joined = check_ray_start([*worker["entrypoint"], *worker["command"]])
        assert joined["address"] == f"store:{started['port']}"
        assert joined["num_cpus"] >= given["shards"], "one worker can take all when two are lost"
        assert joined["block"], "or the container would end"


def brokers_of(kafka: dict[str, Any]) -> str:
    """What other containers call it."""
    listeners = kafka["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
    return dict(one.split("://") for one in listeners)["INSIDE"]


def test_the_image_has_what_is_asked_of_it() -> None:
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    text = (ROOT / "Dockerfile").read_text()
    (default,) = re.findall(r"^ARG EXTRAS=(\S+)$", text, re.MULTILINE)
    asked = [service["build"]["args"]["EXTRAS"]
             for service in compose("compose-cluster.yaml")["services"].values()
             if "build" in service]  # fmt: skip
    documented = re.findall(r"EXTRAS=(\S+)", (ROOT / "docs/guide/kuberay.yaml").read_text())
    for given in (default, *asked, *documented):
        assert set(given.split(",")) <= set(extras)
    assert all("ray" in given.split(",") for given in (*asked, *documented))
    for path in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE):
        assert all((ROOT / part).exists() for part in path.split())


# Kubernetes ----------------------------------------------------------------------------------


def container(template: dict[str, Any]) -> dict[str, Any]:
    (found,) = template["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def test_the_manifest_for_kuberay() -> None:
    cluster, job = kuberay()
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    head = cluster["spec"]["headGroupSpec"]
    (group,) = cluster["spec"]["workerGroupSpecs"]
    assert group["minReplicas"] == group["replicas"] == group["maxReplicas"]
    pods = [head["template"], group["template"], job["spec"]["template"]]
    assert len({container(pod)["image"] for pod in pods}) == 1, "Ray's nodes run one release"
    assert job["spec"]["template"]["spec"]["restartPolicy"] in ("OnFailure", "Never")
    for pod in pods:
        its = container(pod)
        assert its["resources"]["requests"] == its["resources"]["limits"]
        named = {volume["name"] for volume in pod["spec"].get("volumes", [])}
        assert {mount["name"] for mount in its.get("volumeMounts", [])} == named
        ports = {port["containerPort"] for port in its.get("ports", [])}
        for probe in ("livenessProbe", "readinessProbe"):
            if probe in its:
                assert its[probe]["tcpSocket"]["port"] in ports
    assert head["rayStartParams"]["num-cpus"] == "0"
    port = container(group["template"])["ports"][0]["containerPort"]
    assert group["rayStartParams"]["node-manager-port"] == str(port)


def test_the_driver_of_kuberay() -> None:
    cluster, job = kuberay()
    (group,) = cluster["spec"]["workerGroupSpecs"]
    driver, worker = container(job["spec"]["template"]), container(group["template"])
    join, run = lines(driver["args"][0])
    given = called(run)
    assert given["engine"] == "ray"
    assert given["shards"] <= group["replicas"] * int(worker["resources"]["limits"]["cpu"])
    assert given["keep"].startswith("s3://"), "a pod's disk goes with the pod"
    for its in (driver, worker):
        assert str(given["checkpoint"]) in [mount["mountPath"] for mount in its["volumeMounts"]]
        assert its["envFrom"] == [{"secretRef": {"name": "lpma-s3"}}]
    gcs = container(cluster["spec"]["headGroupSpec"]["template"])["ports"][0]["containerPort"]
    joined = check_ray_start(join)
    name = cluster["metadata"]["name"]
    assert joined["address"] == f"{name}-head-svc:{gcs}"
    mode, token = driver["env"]
    assert mode == {"name": "RAY_AUTH_MODE", "value": cluster["spec"]["authOptions"]["mode"]}
    assert token["valueFrom"]["secretKeyRef"] == {"name": name, "key": "auth_token"}
    assert joined["num_cpus"] == 0
    assert worker["env"] == [{"name": VARIABLE, "value": "0"}]


@pytest.mark.parametrize("group", ["headGroupSpec", "workerGroupSpecs"])
def test_ray_knows_the_parameters(group: str) -> None:
    found = kuberay()[0]["spec"][group]
    parameters = (found if isinstance(found, dict) else found[0])["rayStartParams"]
    check_ray_start(["ray", "start", *(f"--{name}={it}" for name, it in parameters.items())])


@pytest.mark.parametrize("path", ["compose-cluster.yaml", "docs/guide/kuberay.yaml"])
def test_the_commands_in_comments_exist(path: str) -> None:
    """Those of `lpma` behind exec, and the container that each goes to."""
    text = (ROOT / path).read_text()
    found = re.findall(r"exec (\S+)(?: --)? (lpma .+)", text)
    asked = [(where, command) for where, command in found if "cluster run " not in command]
    assert asked
    for where, command in asked:
        called(shlex.split(command))
        assert where in ("store", "job/lpma-driver")
