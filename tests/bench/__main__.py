"""Run the benchmarks of one area: `make bench AREA=recipes`."""

from __future__ import annotations

import subprocess
import sys

AREAS = {
    "recipes": ["recipes_resolve", "bundles_render", "playbook_start", "embedded_cluster", "drift_scale"],
    "gates": ["signals_parse", "quarantine_decide", "inventory_hosts", "gates_scale"],
    "certification": ["isolation", "training_parse"],
    "lifecycle": ["revalidate_pass", "rollout_plan", "degradation"],
    "jobs": ["job_logs", "checkpoints_scan", "recovery_pass"],
}


def main() -> int:
    area = sys.argv[1] if len(sys.argv) == 2 else ""
    if area not in AREAS:
        print(f"AREA={area!r} is not known; one of: {', '.join(AREAS)}", file=sys.stderr)
        return 2
    statuses = [subprocess.run([sys.executable, "-m", f"tests.bench.{name}"]).returncode for name in AREAS[area]]
    return int(any(statuses))


if __name__ == "__main__":
    sys.exit(main())
