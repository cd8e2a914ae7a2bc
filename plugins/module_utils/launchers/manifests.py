# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run as Kubernetes objects. Pure.

    launcher, why = choose(run, served={"mpijob"})
    objects = build(run, "certify", certification="...", launcher=launcher)

The last object is the one that runs; those before it are what it needs. All are named gp-<run id>.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.launchers import names, operators, pods
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, nearest

JOB, INDEXED, MPI, TRAIN = "job", "indexed-job", "mpijob", "trainjob"
LAUNCHERS = (JOB, INDEXED, MPI, TRAIN)
# The driver ends what is overdue, and reads the logs first. This is for what outlives its driver.
LEFT_ALONE_SECONDS = 600
MASTER_PORT = 29500
SSH_PORT, SSH_TRIES = 2222, 60
HOSTS = "/tmp/goodput-hosts"
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"

# What the MPI operator does, in pods of one job: each runs sshd, the first also the command when all the others answer.
MPI_SCRIPT = f"""\
home=$(getent passwd "$(id -u)" | cut -d: -f6)
mkdir -p "$home/.ssh" /run/sshd
chmod 700 "$home/.ssh"
cp {pods.KEYS_PATH}/ssh-publickey "$home/.ssh/authorized_keys"
cp {pods.KEYS_PATH}/ssh-privatekey "$home/.ssh/goodput"
chmod 600 "$home/.ssh/authorized_keys" "$home/.ssh/goodput"
cat >"$home/.ssh/config" <<END
Host *
  Port {SSH_PORT}
  IdentityFile $home/.ssh/goodput
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
END
sshd=$(command -v sshd || echo /usr/sbin/sshd)
serve="$sshd -e -f /dev/null -p {SSH_PORT} -h $home/.ssh/goodput -o StrictModes=no -o UsePAM=no \
  -o PidFile=$home/.ssh/pid"
if [ "$GOODPUT_INDEX" != 0 ]; then exec $serve -D; fi
$serve || exit
for host in $(echo "$GOODPUT_HOSTS" | tr , ' '); do
  echo "$host slots=$GOODPUT_SLOTS" >>{HOSTS}
  tries=0
  until answer=$(ssh "$host" true 2>&1); do
    tries=$((tries + 1))
    if [ $tries = {SSH_TRIES} ]; then echo "$answer" >&2; exit 255; fi
    sleep 2
  done
done
"$@"
code=$?
for host in $(echo "$GOODPUT_HOSTS" | tr , ' ' | cut -s -d' ' -f2-); do
  ssh "$host" 'kill $(cat .ssh/pid)' || true
done
exit $code
"""


def choose(run: Mapping, served: Collection[str]) -> tuple[str, str]:
    """(launcher, why it is not the run's own, else ""). served: those of mpijob and trainjob that the cluster has."""
    wanted = run["launcher"]
    if wanted not in LAUNCHERS:
        raise InvalidDocument(
            f"{wanted!r} is no launcher", path=f"run {run['id']}.launcher", hint=nearest(wanted, LAUNCHERS)
        )
    if wanted == JOB and len(run["nodes"]) > 1:
        return INDEXED, "a plain job is for one node"
    if wanted in (MPI, TRAIN) and wanted not in served:
        kind, group = {MPI: ("MPIJob", operators.MPI), TRAIN: ("TrainJob", operators.TRAINER)}[wanted]
        return INDEXED, f"the cluster does not serve {kind} of {group}: an indexed job in its place"
    return wanted, ""


def leads(run: Mapping) -> bool:
    """Whether one pod runs the command and the others wait for it."""
    return run["launcher"] == MPI


def build(run: Mapping, namespace: str, certification: str, launcher: str) -> list[dict]:
    """The objects of a run (see planned_run.build), in the order in which they are to be made.

    certification: what tells the certification from others, such as its uid. A Secret is without its keys
    (`ssh-privatekey`, `ssh-publickey`), which whoever makes it has to fill in. The annotation goodput.fleet/spec
    is equal exactly when the rest is, but for whose run it is. Raises InvalidDocument.
    """
    if not run["nodes"]:
        raise InvalidDocument("a run needs a node", path=f"run {run['id']}.nodes")
    labels = names.of_run(run, certification)
    metadata = {
        "name": names.object_name(run["id"]),
        "namespace": namespace,
        "labels": {**run["labels"], **labels},
    }
    deadline = run["limits"]["start"] + run["limits"]["run"] + LEFT_ALONE_SECONDS
    makers = {JOB: _plain, INDEXED: _indexed, MPI: operators.mpi_job, TRAIN: operators.train_job}
    objects = makers[launcher](run, metadata, labels, deadline)
    theirs = names.of_run({**run, "category": "-"}, "-")
    plain = {**metadata, "labels": {**run["labels"], **theirs}}
    spec = digest.sha256(makers[launcher](run, plain, theirs, deadline))
    for each in objects:
        each["metadata"] = {**each["metadata"], "annotations": {names.SPEC: spec}}
    return objects


def _plain(run: Mapping, metadata: Mapping, labels: Mapping, deadline: int) -> list[dict]:
    template = pods.template(run, labels, command=run["command"], env=_torch(run, "localhost"))
    return [_job(metadata, deadline, {"backoffLimit": 0, "template": template})]


def _indexed(run: Mapping, metadata: Mapping, labels: Mapping, deadline: int) -> list[dict]:
    name, count = metadata["name"], len(run["nodes"])
    hosts = [f"{name}-{index}.{name}" for index in range(count)]
    env = [
        {"name": "GOODPUT_HOSTS", "value": ",".join(hosts)},
        {"name": "GOODPUT_INDEX", "valueFrom": {"fieldRef": {"fieldPath": INDEX}}},
        *_torch(run, hosts[0]),
    ]
    command, needs = run["command"], [_service(metadata, labels)]
    if leads(run):
        command, more = _mpi(run)
        env += more
        needs.append(
            {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/ssh-auth", "metadata": dict(metadata)}
        )
    template = pods.template(
        run, labels, command=command, env=env, subdomain=name, keys_secret=name if leads(run) else ""
    )
    spec: dict = {
        "completions": count,
        "parallelism": count,
        "completionMode": "Indexed",
        # none is tried again, and none is deleted (with its log) because another one has failed
        "backoffLimitPerIndex": 0,
        "backoffLimit": count,
        "template": template,
    }
    # no success policy: it deletes the pods that wait, and they show where the test ran
    return [*needs, _job(metadata, deadline, spec)]


def _job(metadata: Mapping, deadline: int, spec: Mapping) -> dict:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": dict(metadata),
        "spec": {"activeDeadlineSeconds": deadline, **spec},
    }


def _service(metadata: Mapping, labels: Mapping) -> dict:
    """Gives the pods names, before they are ready."""
    selector = {names.RUN: labels[names.RUN], names.ROLE: names.WORKER}
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector}
    return {"apiVersion": "v1", "kind": "Service", "metadata": dict(metadata), "spec": spec}


def _torch(run: Mapping, master: str) -> list[dict]:
    """What torchrun reads where its command line does not say it, as Kubeflow's trainer gives it."""
    rank: dict = {"value": "0"} if len(run["nodes"]) == 1 else {"valueFrom": {"fieldRef": {"fieldPath": INDEX}}}
    return [
        {"name": "PET_NNODES", "value": str(len(run["nodes"]))},
        {"name": "PET_NPROC_PER_NODE", "value": str(run["expected"]["gpusPerNode"])},
        {"name": "PET_NODE_RANK", **rank},
        {"name": "PET_MASTER_ADDR", "value": master},
        {"name": "PET_MASTER_PORT", "value": str(MASTER_PORT)},
    ]


def _mpi(run: Mapping) -> tuple[list[str], list[dict]]:
    slots = run["expected"]["gpusPerNode"]
    env = [
        {"name": "GOODPUT_SLOTS", "value": str(slots)},
        {"name": "OMPI_MCA_orte_keep_fqdn_hostnames", "value": "true"},
        {"name": "OMPI_MCA_orte_default_hostfile", "value": HOSTS},
        {"name": "PRTE_MCA_prte_default_hostfile", "value": HOSTS},
    ]
    return ["/bin/sh", "-c", MPI_SCRIPT, "goodput", *run["command"]], env
