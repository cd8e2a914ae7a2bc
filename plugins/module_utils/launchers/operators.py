# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run as objects of operators: MPIJob, and TrainJob with a TrainingRuntime of its own. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.launchers import names, pods

MPI, TRAINER = "kubeflow.org/v2beta1", "trainer.kubeflow.org/v1alpha1"


def mpi_job(run: Mapping, metadata: Mapping, labels: Mapping, deadline: int) -> list[dict]:
    """The launcher runs the command; the workers run sshd, which is what the operator gives pods without a command."""
    launcher = pods.template(
        run,
        labels,
        command=run["command"],
        env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}],
        role=names.LAUNCHER,
    )
    spec = {
        "slotsPerWorker": run["expected"]["gpusPerNode"],
        "launcherCreationPolicy": "WaitForWorkersReady",
        # the pods' logs are read before we delete it
        "runPolicy": {"cleanPodPolicy": "None", "backoffLimit": 0, "activeDeadlineSeconds": deadline},
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": launcher},
            "Worker": {
                "replicas": len(run["nodes"]),
                "restartPolicy": "Never",
                "template": pods.template(run, labels, command=()),
            },
        },
    }
    return [{"apiVersion": MPI, "kind": "MPIJob", "metadata": dict(metadata), "spec": spec}]


def train_job(run: Mapping, metadata: Mapping, labels: Mapping, deadline: int) -> list[dict]:
    """A runtime of its own, since a TrainJob cannot ask for capabilities."""
    template = pods.template(run, labels, command=run["command"])
    job = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer", **labels}},
            "spec": {"backoffLimit": 0, "activeDeadlineSeconds": deadline, "template": template},
        },
    }
    count, each = len(run["nodes"]), run["expected"]["gpusPerNode"]
    runtime = {
        "mlPolicy": {"numNodes": count, "torch": {"numProcPerNode": each}},
        "template": {"spec": {"failurePolicy": {"maxRestarts": 0}, "replicatedJobs": [job]}},
    }
    reference = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": metadata["name"]}
    spec = {
        "runtimeRef": reference,
        "trainer": {"numNodes": count, "numProcPerNode": each},
        "labels": {**run["labels"], **labels},
    }
    return [
        {"apiVersion": TRAINER, "kind": "TrainingRuntime", "metadata": dict(metadata), "spec": runtime},
        {"apiVersion": TRAINER, "kind": "TrainJob", "metadata": dict(metadata), "spec": spec},
    ]
