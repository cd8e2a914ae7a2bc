"""The objects of runs: where their pods may be, what they get, and what they may not do."""

from __future__ import annotations

import re

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.launchers import manifests, names
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

from tests.unit.launchers.a_run import a_run

BOTH = {"mpijob", "trainjob"}
GATE = {"key": "gate.goodput.fleet/burn-in", "value": "", "effect": "NoSchedule"}


def made(run: dict, launcher: str | None = None, served=(), certification: str = "cert-1") -> list[dict]:
    return manifests.build(run, "certify", certification, launcher or manifests.choose(run, served)[0])


def template_of(objects: list[dict]) -> dict:
    return objects[-1]["spec"]["template"]


def test_plain_job():
    run = a_run("dcgm-level2", 1, "diagnostics", tolerated=[GATE])
    (job,) = made(run)
    assert (job["kind"], job["metadata"]["name"]) == ("Job", f"gp-{run['id']}")
    assert job["metadata"]["labels"][names.RUN] == run["id"]
    assert job["metadata"]["labels"][names.CATEGORY] == "dcgm-level2"
    spec, pod = job["spec"], template_of([job])["spec"]
    assert spec["backoffLimit"] == 0 and pod["restartPolicy"] == "Never"
    assert spec["activeDeadlineSeconds"] > run["limits"]["start"] + run["limits"]["run"]
    (container,) = pod["containers"]
    assert container["command"] == run["command"]
    assert container["resources"]["limits"] == container["resources"]["requests"] == {"nvidia.com/gpu": "8"}
    assert container["securityContext"] == {"privileged": True} and pod["hostNetwork"]
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-0000"]}]}]
    assert "podAntiAffinity" not in pod["affinity"]
    assert pod["automountServiceAccountToken"] is False


def test_tolerates_the_named_gates_and_the_gpu_taint_and_nothing_else():
    pod = template_of(made(a_run(tolerated=[GATE])))["spec"]
    assert pod["tolerations"] == [
        {"key": "gate.goodput.fleet/burn-in", "operator": "Exists", "effect": "NoSchedule"},
        manifests.pods.GPU_TAINT,
    ]
    assert template_of(made(a_run()))["spec"]["tolerations"] == [manifests.pods.GPU_TAINT]


def test_group_has_one_pod_on_each_of_its_nodes():
    run = a_run(nodes=3)
    service, secret, job = made(run)
    assert (service["kind"], secret["kind"], job["kind"]) == ("Service", "Secret", "Job")
    spec, pod = job["spec"], template_of([job])["spec"]
    assert spec["completions"] == spec["parallelism"] == 3 and spec["completionMode"] == "Indexed"
    # no retry of an index; and no pod is deleted, with its log, since another one fails
    assert spec["backoffLimitPerIndex"] == 0 and spec["backoffLimit"] == 3
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [term["matchFields"][0]["values"] for term in terms] == [[name] for name in run["nodes"]]
    (apart,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    labels = template_of([job])["metadata"]["labels"]
    assert apart["labelSelector"]["matchLabels"].items() <= labels.items()
    assert service["spec"]["selector"].items() <= labels.items()
    assert service["spec"]["clusterIP"] == "None" and pod["subdomain"] == service["metadata"]["name"]


def test_shm_capabilities_nics_env():
    run = a_run(nics=4, nicResourceName="rdma/ib")
    pod = template_of(made(run))["spec"]
    (container,) = pod["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8", "rdma/ib": "4"}
    assert container["securityContext"]["capabilities"] == {"add": ["IPC_LOCK"]}
    assert {"name": "shm", "emptyDir": {"medium": "Memory"}} in pod["volumes"]
    assert {"name": "shm", "mountPath": "/dev/shm"} in container["volumeMounts"]
    assert {"name": "NCCL_DEBUG", "value": "INFO"} in container["env"]
    sized = template_of(made({**run, "shm": "64Gi"}))["spec"]["volumes"]
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}} in sized


def test_queue_is_passed_through():
    run = a_run(queue={"name": "acceptance"}, workloadMetadata={"labels": {"team": "x"}})
    for objects in (made(run), made(run, "mpijob")):
        assert objects[-1]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "acceptance"
    assert template_of(made(run))["metadata"]["labels"]["team"] == "x"
    kai = a_run(queue={"name": "q", "labelKey": "kai.scheduler/queue", "schedulerName": "kai-scheduler"})
    template = template_of(made(kai))
    assert template["metadata"]["labels"]["kai.scheduler/queue"] == "q"
    assert template["spec"]["schedulerName"] == "kai-scheduler"


@pytest.mark.parametrize(
    ("variant", "domain", "nodes", "served", "launcher", "why"),
    [
        ("dcgm-level1", "diagnostics", 1, (), "job", ""),
        ("nccl-all-reduce", "communication", 2, BOTH, "mpijob", ""),
        ("nccl-all-reduce", "communication", 2, {"trainjob"}, "indexed-job", "does not serve MPIJob of kubeflow.org"),
        ("nemotron5-8b", "training", 2, BOTH, "trainjob", ""),
        ("nemotron5-8b", "training", 2, (), "indexed-job", "does not serve TrainJob of trainer.kubeflow.org"),
    ],
)
def test_choice(variant, domain, nodes, served, launcher, why):
    chosen, said = manifests.choose(a_run(variant, nodes, domain), served)
    assert chosen == launcher and (why in said if why else said == "")


def test_bad_runs_are_named():
    with pytest.raises(InvalidDocument, match="'srnu' is no launcher"):
        manifests.choose({**a_run(), "launcher": "srnu"}, ())
    with pytest.raises(InvalidDocument, match="is not the id of a run"):
        made({**a_run(), "id": "../x"})
    with pytest.raises(InvalidDocument, match="needs a node"):
        made({**a_run(), "nodes": []})


def test_mpi_job():
    run = a_run()
    (job,) = made(run, served=BOTH)
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    spec = job["spec"]
    assert spec["slotsPerWorker"] == 8 and spec["runPolicy"]["backoffLimit"] == 0
    assert spec["runPolicy"]["cleanPodPolicy"] == "None"  # or the logs go with the pods
    launcher, worker = (spec["mpiReplicaSpecs"][role] for role in ("Launcher", "Worker"))
    assert worker["replicas"] == 2 and launcher["replicas"] == 1
    first, second = (each["template"]["spec"]["containers"][0] for each in (launcher, worker))
    assert first["command"] == run["command"] and "resources" not in first
    assert "command" not in second and second["resources"]["limits"]["nvidia.com/gpu"] == "8"
    # the launcher's pod is no obstacle to a worker beside it
    (apart,) = worker["template"]["spec"]["affinity"]["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert not apart["labelSelector"]["matchLabels"].items() <= launcher["template"]["metadata"]["labels"].items()


def test_train_job_has_a_runtime_of_its_own():
    run = a_run("nemotron5-8b", 4, "training")
    runtime, job = made(run, served=BOTH)
    assert job["spec"]["runtimeRef"] == {
        "apiGroup": "trainer.kubeflow.org",
        "kind": runtime["kind"],
        "name": runtime["metadata"]["name"],
    }
    assert runtime["spec"]["mlPolicy"] == {"numNodes": 4, "torch": {"numProcPerNode": 8}}
    (replicated,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    pod = replicated["template"]["spec"]["template"]["spec"]
    assert replicated["name"] == pod["containers"][0]["name"] == "node"
    assert replicated["template"]["spec"]["backoffLimit"] == 0


def test_torchrun_finds_its_peers_without_an_operator():
    run = a_run("nemotron5-8b", 4, "training")
    container = template_of(made(run))["spec"]["containers"][0]
    env = {entry["name"]: entry for entry in container["env"]}
    name = f"gp-{run['id']}"
    assert container["command"] == run["command"]
    assert (env["PET_NNODES"]["value"], env["PET_NPROC_PER_NODE"]["value"]) == ("4", "8")
    assert env["PET_MASTER_ADDR"]["value"] == f"{name}-0.{name}"
    assert "job-completion-index" in env["PET_NODE_RANK"]["valueFrom"]["fieldRef"]["fieldPath"]


def test_digest_tells_what_runs_and_not_for_whom():
    def spec(run: dict, **options) -> str:
        return made(run, **options)[-1]["metadata"]["annotations"][names.SPEC]

    run = a_run()
    assert re.fullmatch("sha256:[0-9a-f]{64}", spec(run))
    assert spec(run) == spec({**run, "category": "another"}) == spec(run, certification="cert-2")
    assert spec(run) != spec({**run, "image": "other:2"})
    assert spec(run) != spec({**run, "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]})
    assert spec(run) != spec(run, served=BOTH)


@pytest.mark.parametrize("text", ["x", "nccl-all-reduce", "with space/slash", "é" * 80, "a" * 70, "-", "a."])
def test_labels_are_valid_and_differ(text):
    value = names.label_value(text)
    assert re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", value)
    assert value != names.label_value(text + "!")


@pytest.mark.parametrize("launcher", ["job", "indexed-job", "mpijob", "trainjob"])
def test_objects_are_plain_data(launcher):
    objects = made(a_run(nodes=1 if launcher == "job" else 2), launcher)
    assert yaml.safe_load_all(yaml.safe_dump_all(objects))
    assert {each["metadata"]["name"] for each in objects} == {objects[0]["metadata"]["name"]}
    assert all(each["metadata"]["namespace"] == "certify" for each in objects)


def test_mpi_script_is_a_shell_script(tmp_path):
    """The first pod waits for the others, writes the list of hosts, runs the command and ends the others."""
    import subprocess

    tools = tmp_path / "bin"
    tools.mkdir()
    for name, body in {
        "getent": f"echo root:x:0:0:root:{tmp_path}/home:/bin/sh",
        "sshd": f'echo "$@" >>{tmp_path}/sshd',
        "ssh": f'echo "$@" >>{tmp_path}/ssh; test "$(wc -l <{tmp_path}/ssh)" -gt 1',  # the first try fails
        "sleep": "exit 0",
        "cp": 'touch "$2"',
    }.items():
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    script = manifests.MPI_SCRIPT.replace(manifests.HOSTS, f"{tmp_path}/hosts")
    script = script.replace("/run/sshd", f"{tmp_path}/run")
    env = {"PATH": f"{tools}:/usr/bin:/bin", "GOODPUT_HOSTS": "gp-0.gp,gp-1.gp", "GOODPUT_SLOTS": "8"}
    for index in ("0", "1"):
        command = ["/bin/sh", "-ec", script, "goodput", "echo", "two words", "{literal}"]
        done = subprocess.run(command, env={**env, "GOODPUT_INDEX": index}, capture_output=True, text=True, check=True)
        assert done.stdout == ("two words {literal}\n" if index == "0" else "") and not done.stderr
    assert (tmp_path / "hosts").read_text() == "gp-0.gp slots=8\ngp-1.gp slots=8\n"
    asked = (tmp_path / "ssh").read_text().splitlines()
    assert asked == ["gp-0.gp true", "gp-0.gp true", "gp-1.gp true", "gp-1.gp kill $(cat .ssh/pid)"]
    assert "-D" not in (tmp_path / "sshd").read_text().splitlines()[0]
    assert (tmp_path / "sshd").read_text().splitlines()[1].endswith("-D")
