"""Publish once in a process of its own: `python -m tests.integration.publish_once JSON` prints the result as JSON."""

from __future__ import annotations

import json
import sys

from ansible_collections.goodput.fleet.plugins.module_utils.publish.access import access
from ansible_collections.goodput.fleet.plugins.module_utils.publish.publish import publish
from ansible_collections.goodput.fleet.plugins.module_utils.publish.request import Request
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError


def main() -> int:
    options = json.loads(sys.argv[1])
    way = access(options.pop("repo"), token=options.pop("token", ""))
    workdir = options.pop("workdir", None)
    try:
        print(json.dumps(publish(Request(**options), way, workdir=workdir)))
    except FleetError as error:
        print(json.dumps(error.as_result()))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
