# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes a Snapshot of a live cluster: reads only, several kinds at a time, page by page.

`client` is anything with get(path) and pages(path, page=...). Readers of release records come as arguments, because
they belong to the cluster's adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from ansible_collections.goodput.fleet.plugins.module_utils.drift import facts
from ansible_collections.goodput.fleet.plugins.module_utils.drift.expected import Wanted
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Denied, FleetError
from ansible_collections.goodput.fleet.plugins.module_utils.records.manifests import WORKLOADS
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.snapshot import PARTS

# four lists at a time keep the server busy while one page is decoded; more would only wait for Python's lock
THREADS = 4
CRD_PAGE = 20  # a CRD can be a megabyte
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PLURALS = {kind: ("batch/v1" if kind == "CronJob" else "apps/v1", f"{kind.lower()}s") for kind in WORKLOADS}


def take(
    client,
    readers: dict[str, Callable],
    namespaces: Iterable[str] = (),
    wanted: Callable[[list[dict]], Wanted] | None = None,
    name: str | None = None,
    taken_at: str | None = None,
) -> dict:
    """The Snapshot document.

    `readers`: part (releases, argocd, flux) -> function(client, namespaces) that yields release records.
    `namespaces`: where releases and workloads are read, none means everywhere; workloads also where a release put
    some. `wanted`: given the releases, what to see; None means all CRDs. What is forbidden or fails makes its part
    unknown, with the reason. Raises when the API server cannot be reached or refuses the credential itself.
    """
    spaces = sorted(set(namespaces))
    run = _Run(client)
    version = run.guarded("server", lambda: client.get("/version")) or {}
    with ThreadPoolExecutor(THREADS) as pool:
        nodes = pool.submit(run.collect, "nodes", "/api/v1/nodes", facts.node)
        workloads = run.workloads(pool, spaces or [None])
        releases = [
            pool.submit(run.releases, part, reader, scope)
            for part, reader in readers.items()
            # Helm's records are read under a right per namespace: one refusal must not hide the others
            for scope in ([[space] for space in spaces] if part == "releases" and spaces else [spaces])
        ]
        found = _joined(releases)
        if wanted:
            names, elsewhere = wanted(found)
            crds = [pool.submit(run.crd, each) for each in sorted(names)]
        else:
            elsewhere = {item["namespace"] for release in found for item in release["workloads"]}
            crds = [pool.submit(run.all_crds)]
        more = sorted(elsewhere.difference(spaces)) if spaces else []
        workloads += run.workloads(pool, more)
        spec = {
            "parts": run.parts,
            "namespaces": spaces,
            **({"workloadNamespaces": more} if more else {}),
            "server": facts.server(version),
            "nodes": sorted(nodes.result(), key=lambda item: item["name"]),
            "releases": sorted(found, key=lambda item: (item["namespace"], item["name"], item["source"])),
            "workloads": sorted(_joined(workloads), key=lambda item: (item["kind"], item["namespace"], item["name"])),
            "crds": sorted(_joined(crds), key=lambda item: item["name"]),
        }
    return {
        "apiVersion": "goodput.fleet/v1alpha1",
        "kind": "Snapshot",
        "metadata": {"name": name or client.context, **({"takenAt": taken_at} if taken_at else {})},
        "spec": spec,
    }


def _path(api_version: str, plural: str, namespace: str | None) -> str:
    root = f"/apis/{api_version}"
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def _workload_of(kind: str) -> Callable[[dict], dict]:
    return lambda item: facts.workload(item, kind)


def _joined(futures: list[Future]) -> list[dict]:
    return [item for future in futures for item in future.result()]


class _Run:
    """The parts' states while threads fill them."""

    def __init__(self, client):
        self.client = client
        self.parts: dict[str, dict] = {part: {"status": "ok"} for part in PARTS}

    def guarded(self, part: str, read: Callable):
        """What `read` returns. A refusal or failure is noted; a refused credential ends the run."""
        try:
            return read()
        except Denied as error:
            if getattr(error, "status", None) == 401:
                raise
            self._note(part, error)
        except FleetError as error:
            if part == "server":
                raise
            self._note(part, error)
        return None

    def _note(self, part: str, error: FleetError) -> None:
        known = self.parts[part].get("reason")
        reason = error.problems[0].message
        if known and reason not in known.split("; "):
            reason = f"{known}; {reason}"
        self.parts[part] = {"status": "unknown", "reason": reason}

    def collect(self, part: str, path: str, fact: Callable[[dict], dict]) -> list[dict]:
        found: list[dict] = []

        def read() -> None:
            for items in self.client.pages(path):
                found.extend(map(fact, items))

        self.guarded(part, read)
        return found

    def workloads(self, pool: ThreadPoolExecutor, spaces: Iterable[str | None]) -> list[Future]:
        return [
            pool.submit(self.collect, "workloads", _path(*PLURALS[kind], space), _workload_of(kind))
            for space in spaces
            for kind in WORKLOADS
        ]

    def releases(self, part: str, reader: Callable, namespaces: list[str]) -> list[dict]:
        found: list[dict] = []

        def read() -> None:
            for record in reader(self.client, namespaces):
                found.append(facts.release(record))

        self.guarded(part, read)
        return found

    def all_crds(self) -> list[dict]:
        found: list[dict] = []

        def read() -> None:
            for items in self.client.pages(CRDS, page=CRD_PAGE):
                found.extend(map(facts.crd, items))

        self.guarded("crds", read)
        return found

    def crd(self, name: str) -> list[dict]:
        item = self.guarded("crds", lambda: self.client.find(f"{CRDS}/{name}"))
        return [facts.crd(item)] if item else []
