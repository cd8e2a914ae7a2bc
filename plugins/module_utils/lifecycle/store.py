# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where ValidationRequests and RepairRequests are kept: objects of a cluster, or files below a directory.

store = ClusterStore(client, "goodput-fleet")             # or DirectoryStore("records")
docs, problems = store.list("ValidationRequest")
store.create(request)                                     # False where it is there already
doc = store.write_status(doc, {**doc.get("status", {}), "phase": "Running"})

A document carries in metadata.resourceVersion what it was read as; a status is written only where it still is that.
Both stores take and refuse the same.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import api_path
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import documents
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest, durable, schema, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    FleetError,
    InvalidDocument,
    NotFound,
    Problem,
    Unavailable,
)

MANAGER = "goodput-fleet"
PAGE = 100  # they may be large
SUFFIX = ".yaml"
LOCK_WAIT = 30.0  # seconds
MAX_STORED = documents.LIMIT * 4  # bytes of a file; YAML takes more room than JSON


class ClusterStore:
    """Objects in one namespace. Raises what the client raises; NotFound where the CRDs are missing."""

    def __init__(self, client, namespace: str):
        self.client, self.namespace = client, namespace

    def list(self, kind: str) -> tuple[list[dict], list[Problem]]:
        """(the good documents sorted by name, the problems of the others)."""
        docs, problems = [], []
        with self._served():
            for item in self.client.list(self._path(kind), page=PAGE):
                doc = self._doc(kind, item)
                found = documents.faults(self._source(doc), kind)
                problems += found
                if not found:
                    docs.append(doc)
        return sorted(docs, key=_name), problems

    def get(self, kind: str, name: str) -> dict | None:
        """None where it is not there. Raises InvalidDocument where it is no good."""
        with self._served():
            try:
                item = self.client.get(self._path(kind, name))
            except NotFound as error:
                if error.problems[0].code == "api-missing":
                    raise
                return None
        doc = self._doc(kind, item)
        return documents.load(self._source(doc), kind)

    def create(self, doc: Mapping, check_mode: bool = False) -> bool:
        """False where one of that name that asks for the same is there; Conflict where it asks for something else."""
        kind, name = doc["kind"], doc["metadata"]["name"]
        doc = _new(doc)
        if doc["metadata"].setdefault("namespace", self.namespace) != self.namespace:
            what = f"{kind} {name} is of namespace {doc['metadata']['namespace']}, the requests are in {self.namespace}"
            raise InvalidDocument(what, path="metadata.namespace", hint=f"{self.namespace}, or leave it out")
        query = {"fieldManager": MANAGER, **({"dryRun": "All"} if check_mode else {})}
        with self._served():
            try:
                self.client.post(self._path(kind), doc, **query)
                return True
            except Conflict:
                there = self.get(kind, name)
                if there is None:
                    raise
            except NotFound as error:
                if error.problems[0].code == "api-missing":
                    raise
                hint = f"kubectl create namespace {self.namespace}"
                raise NotFound(f"there is no namespace {self.namespace} for the requests", hint=hint) from error
        return _is_other(there, doc)

    def write_status(self, doc: Mapping, status: Mapping) -> dict:
        """The document as it is now. Raises Conflict where it changed since it was read, or is gone."""
        written = documents.with_status(doc, status)
        if documents.same(written["status"], doc.get("status") or {}):
            return dict(doc)
        kind, name = doc["kind"], _name(doc)
        try:
            item = self.client.put(self._path(kind, name, "status"), written, fieldManager=MANAGER)
        except NotFound as error:
            raise Conflict(f"{kind} {self.namespace}/{name} was deleted meanwhile", code="gone") from error
        except Conflict as error:
            # the answer to an earlier try may have been lost
            now = self.get(kind, name) if getattr(error, "attempts", 1) > 1 else None
            if now is None or now["metadata"]["uid"] != doc["metadata"]["uid"]:
                raise
            if not documents.same([now["spec"], now.get("status")], [doc["spec"], written["status"]]):
                raise
            return now
        return self._doc(kind, item)

    def _path(self, kind: str, name: str | None = None, sub: str | None = None) -> str:
        return api_path(schema.API_VERSION, documents.PLURALS[kind], self.namespace, name, sub)

    def _doc(self, kind: str, item: Mapping) -> dict:
        metadata = {key: value for key, value in item["metadata"].items() if key != "managedFields"}
        return {"apiVersion": schema.API_VERSION, "kind": kind, **item, "metadata": metadata}

    def _source(self, doc: Mapping) -> yamltree.Document:
        return yamltree.Document(doc, {}, f"{doc['kind']} {self.namespace}/{_name(doc)}")

    @contextlib.contextmanager
    def _served(self) -> Iterator[None]:
        try:
            yield
        except NotFound as error:
            if error.problems[0].code != "api-missing":
                raise
            raise NotFound(
                error.problems[0].message, code="api-missing", hint="kubectl apply -f gitops/crds"
            ) from error


class DirectoryStore:
    """Files PATH/<plural>/<name>.yaml with the status inside. A comment in a file is lost when its status is written.

    A file is there as a whole or not at all, and of several writers at once each sees what the one before it wrote.
    """

    def __init__(self, path: str):
        self.path = str(path)

    def list(self, kind: str) -> tuple[list[dict], list[Problem]]:
        """(the good documents sorted by name, the problems of the other files). No directory holds no documents."""
        folder = self._folder(kind)
        docs, problems = [], []
        try:
            names = sorted(os.listdir(folder))
        except FileNotFoundError:
            return [], []
        except OSError as error:
            raise Unavailable(f"cannot be read: {error.strerror or error}", file=folder, code="disk") from error
        for name in names:
            path = os.path.join(folder, name)
            if name.startswith(".") or not name.endswith((SUFFIX, ".yml")):
                continue
            if not name.endswith(SUFFIX):
                problems.append(Problem("bad-name", "is not read", path, hint=f"name it {name[:-4]}{SUFFIX}"))
                continue
            try:
                docs.append(_read(path, kind))
            except FleetError as error:
                if os.path.lexists(path):  # else it was deleted just now
                    problems += error.problems
        return sorted(docs, key=_name), problems

    def get(self, kind: str, name: str) -> dict | None:
        """None where it is not there. Raises InvalidDocument where it is no good."""
        path = self._file(kind, name)
        return _read(path, kind) if os.path.lexists(path) else None

    def create(self, doc: Mapping, check_mode: bool = False) -> bool:
        """False where one of that name that asks for the same is there; Conflict where it asks for something else."""
        kind, doc = doc["kind"], _new(doc)
        with contextlib.nullcontext() if check_mode else self._alone(kind):
            there = self.get(kind, _name(doc))
            if there is None:
                if not check_mode:
                    self._write(doc)
                return True
        return _is_other(there, doc)

    def write_status(self, doc: Mapping, status: Mapping) -> dict:
        """The document as it is now. Raises Conflict where it changed since it was read, or is gone."""
        written = documents.with_status(doc, status)
        if documents.same(written["status"], doc.get("status") or {}):
            return dict(doc)
        kind, name = doc["kind"], _name(doc)
        with self._alone(kind):
            path = self._file(kind, name)
            if not os.path.lexists(path):
                raise Conflict(f"{kind} {name} was deleted meanwhile", file=path, code="gone")
            if _version(yamltree.read(path)) != doc["metadata"].get("resourceVersion"):
                raise Conflict(f"{kind} {name} changed since it was read", file=path, hint="read it again")
            return self._write(documents.plain(written))

    def _folder(self, kind: str) -> str:
        return os.path.join(self.path, documents.PLURALS[kind])

    def _file(self, kind: str, name: str) -> str:
        return os.path.join(self._folder(kind), name + SUFFIX)

    def _write(self, doc: dict) -> dict:
        text = yamltree.dump(doc)
        durable.replace(self._folder(doc["kind"]), _name(doc) + SUFFIX, text.encode())
        return _versioned(doc, text)

    @contextlib.contextmanager
    def _alone(self, kind: str) -> Iterator[None]:
        folder = self._folder(kind)
        with durable.disk(folder, "the requests"):
            os.makedirs(folder, exist_ok=True)
            handle = durable.lock(folder, "another writer of requests", LOCK_WAIT)
            try:
                for left in durable.unfinished(folder):  # of a writer that died
                    durable.remove(left)
                yield
            finally:
                os.close(handle)


def _read(path: str, kind: str) -> dict:
    """Raises NotFound or InvalidDocument."""
    text = yamltree.read(path)
    if len(text) > MAX_STORED:
        raise InvalidDocument(f"is larger than {MAX_STORED} bytes", file=path, code="too-large")
    doc = documents.load(yamltree.load_text(text, path), kind)
    stem = os.path.basename(path).removesuffix(SUFFIX)
    if _name(doc) != stem:
        what = f"is named {_name(doc)}, which is not the file's name"
        raise InvalidDocument(what, file=path, path="metadata.name", code="bad-name", hint=f"{stem}, or another file")
    return _versioned(doc, text)


def _versioned(doc: Mapping, text: str) -> dict:
    return {**doc, "metadata": {**doc["metadata"], "resourceVersion": _version(text)}}


def _version(text: str) -> str:
    return digest.sha256_bytes(text.encode())


def _new(doc: Mapping) -> dict:
    """As it is stored first: checked, without what belongs to the object it may have been read from, nor a status."""
    kind = doc["kind"]
    doc = documents.load(yamltree.Document(documents.plain(doc), {}, f"{kind} {_name(doc)}"), kind)
    documents.check_size(doc)
    bare = {key: value for key, value in doc.items() if key != "status"}
    return {**bare, "metadata": dict(doc["metadata"])}


def _is_other(there: Mapping, doc: Mapping) -> bool:
    if documents.same(there["spec"], doc["spec"]):
        return False
    what = f"there is a {doc['kind']} {_name(doc)} that asks for something else"
    raise Conflict(what, hint="what was asked for is not changed: choose another name")


def _name(doc: Mapping) -> str:
    return doc["metadata"]["name"]
