"""What a site brings to a driver update: the program that puts the driver on nodes, here on simulated ones.

    python -m tests.integration.driver_site KUBECONFIG DRIVER SECONDS NODE...

One node after the other gets the driver and a new boot, and the number of changes that it has had goes up, all three by
writes of which the first two are one. `SECONDS` pass between nodes. Nodes with the label HELD stay as they are.
"""

from __future__ import annotations

import sys
import time

from tests.simfleet.api import Api
from tests.simfleet.nodes import Fleet, driver_labels, path_of

CHANGES = "test.example.com/changes"
HELD = "test.example.com/held"


def change(api: Api, name: str, driver: str) -> None:
    metadata = api.get(path_of(name))["metadata"]
    if HELD in metadata["labels"]:
        return
    number = int((metadata.get("annotations") or {}).get(CHANGES, "0")) + 1
    body = {"metadata": {"labels": driver_labels(driver), "annotations": {CHANGES: str(number)}}}
    api.patch(path_of(name), body)
    Fleet(api, 0).reboot(name)


def main() -> None:
    kubeconfig, driver, seconds, *names = sys.argv[1:]
    api = Api(kubeconfig)
    for name in names:
        change(api, name, driver)
        time.sleep(float(seconds))


if __name__ == "__main__":
    main()
