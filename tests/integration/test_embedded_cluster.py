"""The simulated fleet does what the other integration tests rely on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.simfleet import ClusterFailed, EmbeddedCluster, rundir
from tests.simfleet import workloads as make
from tests.simfleet.api import Api, ApiError, wait_until
from tests.simfleet.workloads import path

pytestmark = pytest.mark.cluster


def get_pod(cluster: EmbeddedCluster, namespace: str, name: str = "p") -> dict:
    return cluster.api.get(path(namespace, "pods", name))


def run_pod(cluster: EmbeddedCluster, namespace: str, seconds: float = 15, **arguments) -> dict:
    """Make the pod "p" and return it once it has ended."""
    cluster.api.create(path(namespace, "pods"), make.pod("p", **arguments))
    wait_until(
        lambda: get_pod(cluster, namespace)["status"]["phase"] in ("Succeeded", "Failed"), seconds, "the pod's end"
    )
    return get_pod(cluster, namespace)


def wait_for_state(cluster: EmbeddedCluster, namespace: str, what: str, name: str = "p") -> dict:
    """The pod, once its main container is waiting, running or terminated."""

    def there() -> bool:
        statuses = get_pod(cluster, namespace, name)["status"].get("containerStatuses")
        return bool(statuses) and what in statuses[0]["state"]

    wait_until(there, 15, lambda: f"{what}: {get_pod(cluster, namespace, name)['status']}")
    return get_pod(cluster, namespace, name)


def condition(item: dict, kind: str) -> dict:
    return next(each for each in item["status"]["conditions"] if each["type"] == kind)


class TestControlPlane:
    def test_it_is_the_pinned_kubernetes_and_it_is_ready(self, cluster):
        assert cluster.api.get("/version")["gitVersion"] == "v1.36.3"
        assert cluster.api.request("GET", "/readyz")["message"] == "ok"

    def test_it_listens_on_loopback_only(self, cluster):
        listeners = listening(rundir.processes_of(cluster.dir))
        assert len(listeners) >= 4  # API server, etcd twice, kubelet
        assert {address for address, _ in listeners} == {"127.0.0.1"}

    def test_a_death_is_told_with_the_end_of_the_log(self, make_cluster):
        own = make_cluster(nodes=0)
        own.check()
        os.kill(child_named(own, "controlplane"), signal.SIGKILL)
        wait_until(lambda: not rundir.is_alive(own.dir), 10, "the supervisor's end")
        with pytest.raises(ClusterFailed, match=r"controlplane ended \(signal 9\)\n--- end of .*controlplane.log\n.+"):
            own.check()
        wait_until(lambda: not rundir.processes_of(own.dir), 5, "the end of the other processes")

    def test_a_start_that_fails_says_why(self, make_cluster):
        with pytest.raises(ClusterFailed, match=r"controlplane ended .*(\n.*)*unknown flag: --no-such-flag"):
            make_cluster(nodes=0, controlplane_flags=["--apiserver=--no-such-flag"])

    def test_two_at_once_have_nothing_in_common(self, cluster, make_cluster):
        other = make_cluster(nodes=2, profile="eks")
        assert other.kubeconfig != cluster.kubeconfig
        assert other.fleet.names() == ["gpu-0000", "gpu-0001"]
        assert len(cluster.fleet.names()) == 8
        with pytest.raises(ApiError, match="401"):
            token_of_one = re.search(r"token: (\S+)", cluster.kubeconfig.read_text())[1]
            Api(other.access.with_token("stranger", token_of_one)).get("/api/v1/nodes")


class TestNodes:
    def test_they_look_like_gpu_nodes(self, cluster):
        assert cluster.fleet.ready() == [f"gpu-{number:04d}" for number in range(8)]
        node = cluster.fleet.get("gpu-0005")
        labels, status = node["metadata"]["labels"], node["status"]
        assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
        assert labels["nvidia.com/cuda.driver-version.full"] == "580.105.08"
        assert labels["goodput.fleet/rack"] == "gpu-rack-01"
        assert status["capacity"]["nvidia.com/gpu"] == status["allocatable"]["nvidia.com/gpu"] == "8"
        boot_ids = {each["status"]["nodeInfo"]["bootID"] for each in cluster.api.list("/api/v1/nodes")}
        assert len(boot_ids) == 8 and all(boot_ids)
        assert condition(node, "Ready")["reason"] == "KubeletReady"

    def test_a_reboot_gives_a_new_boot_id_and_the_node_comes_back(self, make_cluster):
        fleet = make_cluster(nodes=1).fleet
        before = fleet.get("gpu-0000")["status"]["nodeInfo"]
        boot_id = fleet.reboot("gpu-0000")
        fleet.wait_ready(1, seconds=15)
        after = fleet.get("gpu-0000")["status"]["nodeInfo"]
        assert after == before | {"bootID": boot_id} and boot_id != before["bootID"]

        fleet.set_not_ready("gpu-0000")
        wait_until(lambda: "node.kubernetes.io/unreachable" in taints(fleet, "gpu-0000"), 15, "the taint")
        time.sleep(1)  # kwok would have made it Ready by now
        assert condition(fleet.get("gpu-0000"), "Ready")["status"] == "Unknown"
        fleet.set_ready("gpu-0000")
        wait_until(lambda: not taints(fleet, "gpu-0000"), 15, "the taint's removal")

        fleet.set_driver("gpu-0000", "570.172.08")
        labels = fleet.get("gpu-0000")["metadata"]["labels"]
        assert labels["nvidia.com/cuda.driver-version.full"] == "570.172.08"
        assert labels["nvidia.com/cuda.driver.major"] == "570"


def taints(fleet, name: str) -> list[str]:
    return [taint["key"] for taint in fleet.get(name)["spec"].get("taints", [])]


class TestScheduling:
    def test_gpus_are_a_resource_that_runs_out(self, make_cluster):
        cluster = make_cluster(nodes=1)
        for name, gpus in (("a", 6), ("b", 4), ("c", 2)):
            cluster.api.create(path("default", "pods"), make.pod(name, gpus=gpus))
        wait_for_state(cluster, "default", "running", "a")
        wait_for_state(cluster, "default", "running", "c")
        refused = condition(get_pod(cluster, "default", "b"), "PodScheduled")
        assert refused["reason"] == "Unschedulable" and "1 Insufficient nvidia.com/gpu" in refused["message"]
        cluster.api.delete(path("default", "pods", "a"))
        wait_for_state(cluster, "default", "running", "b")


class TestContainers:
    def test_a_job_has_its_scripts_exit_codes_and_logs(self, cluster, namespace):
        script = "#!/bin/sh\necho rank $JOB_COMPLETION_INDEX on $NODE_NAME\n[ $JOB_COMPLETION_INDEX != 2 ] || exit 79\n"
        cluster.api.create(path(namespace, "jobs"), make.job("j", completions=4, gpus=8, script=script))

        def pods() -> list[dict]:
            return cluster.api.list(path(namespace, "pods"))

        wait_until(lambda: {each["status"]["phase"] for each in pods()} == {"Succeeded", "Failed"}, 20, "four ends")
        ends = {}
        for each in pods():
            rank = int(each["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])
            ended = each["status"]["containerStatuses"][0]["state"]["terminated"]
            ends[rank] = (ended["exitCode"], ended["reason"])
            node = each["spec"]["nodeName"]
            assert cluster.api.logs(namespace, each["metadata"]["name"]) == f"rank {rank} on {node}\n"
        assert ends == {0: (0, "Completed"), 1: (0, "Completed"), 2: (79, "Error"), 3: (0, "Completed")}
        failed = wait_until(lambda: job_condition(cluster, namespace, "Failed"), 10, "the job's failure")
        assert failed["reason"] == "BackoffLimitExceeded"

    def test_scripts_may_lie_in_the_clusters_folder(self, cluster, namespace):
        cluster.script("hello", "#!/bin/sh\necho hello from $POD_NAME in $POD_NAMESPACE; kill -9 $$\n")
        pod = run_pod(cluster, namespace, spec={"restartPolicy": "Never"}, script="hello")
        assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
        assert cluster.api.logs(namespace, "p") == f"hello from p in {namespace}\n"

    def test_a_containers_own_command_can_be_run(self, cluster, namespace):
        body = make.pod("p", spec={"restartPolicy": "Never"}, exec=True)
        body["spec"]["containers"][0] |= {
            "command": ["sh", "-c"],
            "args": ["echo $(GREETING) $TEAM; exit 4"],
            "env": [
                {"name": "GREETING", "value": "hi"},
                {"name": "TEAM", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['team']"}}},
            ],
        }
        body["metadata"]["labels"] = {"team": "red"}
        cluster.api.create(path(namespace, "pods"), body)
        pod = wait_for_state(cluster, namespace, "terminated")
        assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 4
        assert cluster.api.logs(namespace, "p") == "hi red\n"

    def test_logs_can_be_followed_and_cut(self, cluster, namespace):
        script = "#!/bin/sh\nfor i in 1 2 3 4; do echo line $i; sleep 0.4; done; printf end\n"
        cluster.api.create(path(namespace, "pods"), make.pod("p", spec={"restartPolicy": "Never"}, script=script))
        wait_for_state(cluster, namespace, "running")
        followed = cluster.api.logs(namespace, "p", follow="true")
        assert followed == "line 1\nline 2\nline 3\nline 4\nend"
        assert cluster.api.logs(namespace, "p", tailLines="2") == "line 4\nend"
        assert cluster.api.logs(namespace, "p", limitBytes="8") == "line 1\nl"
        stamped = cluster.api.logs(namespace, "p", timestamps="true", container="main").splitlines()
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z line 1", stamped[0])
        with pytest.raises(ApiError, match="container nope is not valid for pod p"):
            cluster.api.logs(namespace, "p", container="nope")

    def test_a_failed_container_is_restarted_and_its_previous_log_is_kept(self, cluster, namespace):
        script = "#!/bin/sh\necho run $SIM_RESTART_COUNT\n[ $SIM_RESTART_COUNT = 1 ]\n"
        pod = run_pod(cluster, namespace, spec={"restartPolicy": "OnFailure"}, script=script)
        main = pod["status"]["containerStatuses"][0]
        assert pod["status"]["phase"] == "Succeeded"
        assert main["restartCount"] == 1 and main["lastState"]["terminated"]["exitCode"] == 1
        assert cluster.api.logs(namespace, "p") == "run 1\n"

    def test_a_crashing_daemon_backs_off_and_stays_in_phase_running(self, cluster, namespace):
        cluster.api.create(path(namespace, "pods"), make.pod("p", script="#!/bin/sh\necho oops\nexit 3\n"))
        pod = wait_for_state(cluster, namespace, "waiting")
        main = pod["status"]["containerStatuses"][0]
        assert main["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert main["lastState"]["terminated"]["exitCode"] == 3
        assert pod["status"]["phase"] == "Running" and condition(pod, "Ready")["reason"] == "ContainersNotReady"
        assert cluster.api.logs(namespace, "p") == cluster.api.logs(namespace, "p", previous="true") == "oops\n"

    def test_a_script_that_is_not_there_is_a_start_error(self, cluster, namespace):
        pod = run_pod(cluster, namespace, spec={"restartPolicy": "Never"}, script="missing")
        ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        assert ended["reason"] == "StartError" and "No such file" in ended["message"]

    def test_the_deadline_of_a_pod_ends_it(self, cluster, namespace):
        spec = {"restartPolicy": "Never", "activeDeadlineSeconds": 1}
        pod = run_pod(cluster, namespace, spec=spec, script="#!/bin/sh\nsleep 60\n")
        assert pod["status"]["phase"] == "Failed" and pod["status"]["reason"] == "DeadlineExceeded"

    def test_a_deleted_pod_gets_a_term_signal_and_takes_its_processes_along(self, cluster, namespace):
        script = "#!/bin/sh\nsleep 77 &\ntrap 'echo bye; exit 0' TERM\necho up\nwhile :; do sleep 0.1; done\n"
        cluster.api.create(path(namespace, "pods"), make.pod("p", script=script))
        wait_for_state(cluster, namespace, "running")
        wait_until(lambda: cluster.api.logs(namespace, "p") == "up\n", 10, "the first line")
        assert commands(cluster, "sleep 77")
        lines: list[str] = []
        follower = threading.Thread(target=lambda: lines.append(cluster.api.logs(namespace, "p", follow="true")))
        follower.start()
        time.sleep(0.2)
        cluster.api.delete(path(namespace, "pods", "p"))
        wait_until(lambda: cluster.api.find(path(namespace, "pods", "p")) is None, 10, "the pod's removal")
        follower.join(10)
        assert lines == ["up\nbye\n"]
        wait_until(lambda: not commands(cluster, "sleep 77"), 5, "the end of its background process")

    def test_a_script_that_ignores_the_term_signal_is_killed_after_the_grace_period(self, cluster, namespace):
        script = "#!/bin/sh\ntrap '' TERM\necho up\nwhile :; do sleep 0.1; done\n"
        spec = {"terminationGracePeriodSeconds": 1}
        cluster.api.create(path(namespace, "pods"), make.pod("p", spec=spec, script=script))
        wait_for_state(cluster, namespace, "running")
        began = time.monotonic()
        cluster.api.delete(path(namespace, "pods", "p"))
        wait_until(lambda: cluster.api.find(path(namespace, "pods", "p")) is None, 10, "the pod's removal")
        assert time.monotonic() - began >= 1

    def test_init_containers_run_first_and_sidecars_beside(self, cluster, namespace):
        script = "#!/bin/sh\necho main\n"
        body = make.pod("p", spec={"restartPolicy": "Never"}, script=script, script__setup="#!/bin/sh\necho setup\n")
        body["spec"]["initContainers"] = [
            {"name": "setup", "image": make.IMAGE},
            {"name": "proxy", "image": make.IMAGE, "restartPolicy": "Always"},
        ]
        cluster.api.create(path(namespace, "pods"), body)
        wait_until(lambda: get_pod(cluster, namespace)["status"]["phase"] == "Succeeded", 15, "success")
        states = {each["name"]: each for each in get_pod(cluster, namespace)["status"]["initContainerStatuses"]}
        assert states["setup"]["state"]["terminated"]["reason"] == "Completed"
        assert "terminated" in states["proxy"]["state"]
        assert cluster.api.logs(namespace, "p", container="setup") == "setup\n"
        assert cluster.api.logs(namespace, "p", container="main") == "main\n"


class TestFailures:
    @pytest.mark.parametrize(
        ("reason", "phase"),
        [
            ("CrashLoopBackOff", "Running"),
            ("ImagePullBackOff", "Pending"),
            ("ErrImagePull", "Pending"),
            ("CreateContainerConfigError", "Pending"),
        ],
    )
    def test_a_pod_can_wait_for_any_reason(self, cluster, namespace, reason, phase):
        cluster.api.create(path(namespace, "pods"), make.pod("p", waiting=reason, message="because"))
        pod = wait_for_state(cluster, namespace, "waiting")
        wait_until(lambda: get_pod(cluster, namespace)["status"]["phase"] == phase, 5, phase)
        waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]
        assert waiting == {"reason": reason, "message": "because"}
        assert condition(pod, "Ready")["status"] == "False"

    def test_an_init_container_can_crash(self, cluster, namespace):
        body = make.pod("p", waiting__setup="CrashLoopBackOff")
        body["spec"]["initContainers"] = [{"name": "setup", "image": make.IMAGE}]
        cluster.api.create(path(namespace, "pods"), body)
        pod = wait_for_state(cluster, namespace, "waiting")
        setup = pod["status"]["initContainerStatuses"][0]
        assert setup["state"]["waiting"]["reason"] == "CrashLoopBackOff" and setup["restartCount"] == 1
        assert pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
        assert pod["status"]["phase"] == "Pending"
        assert "incomplete status: [setup]" in condition(pod, "Initialized")["message"]

    def test_a_pod_that_never_started_has_no_log(self, cluster, namespace):
        cluster.api.create(path(namespace, "pods"), make.pod("p", waiting="ImagePullBackOff"))
        wait_for_state(cluster, namespace, "waiting")
        with pytest.raises(ApiError, match="waiting to start"):
            cluster.api.logs(namespace, "p")

    def test_an_annotation_that_makes_no_sense_is_shown_on_the_pod(self, cluster, namespace):
        body = make.pod("p")
        body["metadata"]["annotations"] = {"sim.goodput.fleet/exit-code": "many"}
        cluster.api.create(path(namespace, "pods"), body)
        waiting = wait_for_state(cluster, namespace, "waiting")["status"]["containerStatuses"][0]["state"]["waiting"]
        assert waiting["reason"] == "CreateContainerConfigError"
        assert waiting["message"] == "annotation sim.goodput.fleet/exit-code: exit-code is 'many', expected int"

    def test_a_daemon_set_with_one_ready_pod_of_eight_and_its_recovery(self, cluster, namespace):
        cluster.api.create(path(namespace, "daemonsets"), make.daemon_set("driver"))

        def ready() -> int:
            status = cluster.api.get(path(namespace, "daemonsets", "driver"))["status"]
            return status["numberReady"] if status["desiredNumberScheduled"] == 8 else -1

        wait_until(lambda: ready() == 8, 20, "eight ready pods")
        match = {"namespace": namespace, "owner": "DaemonSet/driver", "exceptNode": "gpu-0003"}
        with cluster.faults.active("bad-driver", match, waiting="CrashLoopBackOff", restarts=7, log="modprobe failed"):
            wait_until(lambda: ready() == 1, 20, "one ready pod")
            broken = [
                each
                for each in cluster.api.list(path(namespace, "pods"))
                if each["status"]["containerStatuses"][0]["state"].get("waiting", {}).get("reason")
                == "CrashLoopBackOff"
            ]
            assert len(broken) == 7
            assert {each["status"]["containerStatuses"][0]["restartCount"] for each in broken} == {7}
            assert cluster.api.logs(namespace, broken[0]["metadata"]["name"]) == "modprobe failed\n"
        wait_until(lambda: ready() == 8, 20, "eight ready pods again")

    def test_a_deployment_becomes_available_unless_its_pods_are_unready(self, cluster, namespace):
        cluster.api.create(path(namespace, "deployments"), make.deployment("good", replicas=3))
        cluster.api.create(path(namespace, "deployments"), make.deployment("bad", replicas=2, ready=False))

        def status(name: str) -> dict:
            return cluster.api.get(path(namespace, "deployments", name))["status"]

        wait_until(lambda: status("good").get("availableReplicas") == 3, 20, "three available pods")
        wait_until(lambda: status("bad").get("unavailableReplicas") == 2, 20, "two unavailable pods")
        for each in cluster.api.list(path(namespace, "pods"), labelSelector="app=bad"):
            wait_for_state(cluster, namespace, "running", each["metadata"]["name"])


class TestAccess:
    def test_a_service_account_may_do_what_its_rules_say(self, cluster, namespace):
        kubeconfig = cluster.access.service_account(
            "reader",
            namespace,
            rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}],
            cluster_rules=[{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}],
        )
        api = Api(kubeconfig)
        assert len(api.list("/api/v1/nodes")) == 8
        assert api.list(path(namespace, "configmaps"))
        for refused in ("/api/v1/namespaces/default/configmaps", "/api/v1/pods"):
            with pytest.raises(ApiError, match="403 Forbidden"):
                api.list(refused)

    def test_tokens_that_are_wrong_or_expired_are_refused(self, cluster):
        for kubeconfig in (cluster.access.wrong_token(), cluster.access.expired_token()):
            with pytest.raises(ApiError, match="401 Unauthorized"):
                Api(kubeconfig).list("/api/v1/nodes")
        log = (cluster.dir / "controlplane.log").read_text()
        assert "token is expired" in log.lower() or "expired" in log.lower()

    def test_a_server_that_is_not_there_refuses_the_connection(self, cluster):
        with pytest.raises(ConnectionRefusedError):
            Api(cluster.access.unreachable()).list("/api/v1/nodes")


PARENT = """
import sys, time
from tests.simfleet import EmbeddedCluster
from tests.simfleet import workloads as make
cluster = EmbeddedCluster(nodes=1).start()
script = "#!/bin/sh\\n(setsid sleep 4711 &)\\necho up\\nsleep 4711\\n"
cluster.api.create("/api/v1/namespaces/default/pods", make.pod("p", script=script))
print(cluster.dir, cluster.pid, flush=True)
time.sleep(600)
"""


class TestNoOrphans:
    @pytest.mark.parametrize("victim", ["parent", "supervisor"])
    def test_kill_9_leaves_no_process(self, victim):
        parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, cwd=rundir.ROOT)
        try:
            folder, pid = parent.stdout.readline().split()
            folder = Path(folder)
            wait_until(lambda: len(scripts_of(folder)) >= 3, 15, "the script and its children")
            assert len(rundir.processes_of(folder)) >= 5
            os.kill(parent.pid if victim == "parent" else int(pid), signal.SIGKILL)
            # What left its process group is found by the supervisor, or, without one, by the next start.
            if victim == "supervisor":
                wait_until(lambda: len(rundir.processes_of(folder)) <= 1, 10, "the end of all but a daemon")
                with rundir.cleaning(folder.parent):
                    rundir.clean_dead(folder.parent)
            wait_until(lambda: not rundir.processes_of(folder), 10, lambda: f"no {rundir.processes_of(folder)}")
            wait_until(lambda: not folder.exists(), 10, f"the removal of {folder}")
        finally:
            parent.kill()
            parent.wait()

    def test_a_detached_cluster_lives_until_it_is_ended(self):
        name = f"detached-{os.getpid()}"

        def simfleet(*arguments: str) -> str:
            command = [sys.executable, "-m", "tests.simfleet", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, cwd=rundir.ROOT)
            assert done.returncode == 0, done.stderr
            return done.stdout

        assert f"{name}: 3 nodes Ready" in simfleet("up", "--name", name, "--nodes", "3", "--detach")
        try:
            assert re.search(rf"^{name}\tdetached\t", simfleet("list"), re.MULTILINE)
            api = Api(simfleet("kubeconfig", "--name", name).strip())
            assert len(api.list("/api/v1/nodes")) == 3
            with pytest.raises(rundir.NameTaken, match=f"a cluster named {name} is up"):
                EmbeddedCluster(name=name, nodes=0).start()
        finally:
            folder = rundir.run_root() / name
            simfleet("down", "--name", name)
        assert not folder.exists() and not rundir.processes_of(folder)
        assert simfleet("down", "--name", name) == f"{name}: was not up\n"


# ---- what the system says of processes ----


def job_condition(cluster: EmbeddedCluster, namespace: str, kind: str) -> dict | None:
    conditions = cluster.api.get(path(namespace, "jobs", "j"))["status"].get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), None)


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""


def commands(cluster: EmbeddedCluster, line: str) -> list[int]:
    return [pid for pid in rundir.processes_of(cluster.dir) if command_line(pid) == line]


def scripts_of(folder: Path) -> list[str]:
    lines = [command_line(pid) for pid in rundir.processes_of(folder)]
    return [line for line in lines if "sleep 4711" in line or line.endswith(".script")]


def child_named(cluster: EmbeddedCluster, program: str) -> int:
    return next(
        pid for pid in rundir.processes_of(cluster.dir) if command_line(pid).split(" ")[0].endswith(f"bin/{program}")
    )


def listening(pids: list[int]) -> set[tuple[str, int]]:
    """(address, port) of the listening TCP sockets of these processes, IPv4 and IPv6."""
    inodes = set()
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            try:
                inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(link)))
            except OSError:
                continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                address, _, port = fields[1].partition(":")
                parts = [str(int(address[at : at + 2], 16)) for at in range(0, len(address), 2)]
                found.add((".".join(reversed(parts)) if len(parts) == 4 else address, int(port, 16)))
    return found
