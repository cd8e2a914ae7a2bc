"""Documents as the other modules make them."""

from __future__ import annotations

LOCK = "sha256:" + "ab" * 32


def finding(**fields) -> dict:
    return {
        "code": "value-differs",
        "severity": "error",
        "component": "gpu-operator",
        "path": "releases/gpu-operator/gpu-operator/values/driver.version",
        "expected": "580.105.08",
        "found": "575.57.08",
        "nodes": [],
        "message": "driver.version is 575.57.08, the recipe says 580.105.08",
        "hint": "install the bundle again",
        **fields,
    }


def drift(findings=(), parts=None, status=None, **spec) -> dict:
    counts = {word: sum(item["severity"] == word for item in findings) for word in ("error", "warning", "info")}
    parts = {"nodes": {"status": "ok"}, "releases": {"status": "ok"}} if parts is None else parts
    unread = any(part["status"] != "ok" for part in parts.values())
    status = status or ("drifted" if counts["error"] or counts["warning"] else "unknown" if unread else "in_sync")
    return {
        "apiVersion": "goodput.fleet/v1alpha1",
        "kind": "DriftReport",
        "metadata": {"name": "prod-1", "lock": LOCK},
        "spec": {
            "status": status,
            "exitCode": {"in_sync": 0, "drifted": 3, "unknown": 4}[status],
            "findings": list(findings),
            "parts": parts,
            "ignored": [],
            "recertify": [],
            "counts": counts,
            **spec,
        },
    }


def reason(**fields) -> dict:
    return {
        "code": "container-waiting",
        "verdict": "unhealthy",
        "object": "DaemonSet/gpu-operator/nvidia-driver-daemonset",
        "message": "container driver waits in CrashLoopBackOff on 3 pods",
        "next": "kubectl -n gpu-operator logs x -c driver --previous",
        "nodes": ["gpu-7"],
        "pods": 3,
        **fields,
    }


def health(**components) -> dict:
    """{name: reasons} as a result; no reasons is healthy."""
    made = []
    for name, reasons in components.items():
        verdicts = {item["verdict"] for item in reasons}
        status = "unhealthy" if "unhealthy" in verdicts else "unknown" if verdicts else "healthy"
        made.append({"name": name, "namespace": name, "status": status, "reasons": reasons})
    return {"name": "prod-1", "components": made, "healthy": all(item["status"] == "healthy" for item in made)}


def install(**fields) -> dict:
    steps = [{"name": "cert-manager", "status": "ok", "message": "was there"}, {"name": "kueue", "status": "changed"}]
    return {"name": "prod-1", "facts": {"Recipe": "h100-eks"}, "steps": steps, **fields}
