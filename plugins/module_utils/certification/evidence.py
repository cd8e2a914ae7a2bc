# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a certification leaves behind: a folder that tells what was run, where, and what came out.

    evidence = Evidence.open(base, certification, categories, nodes)     base/NAME-IDENTITY/
    if (stored := evidence.finished(run)) is None:
        …
        evidence.record(run, logs, parsed, observed, outcome)
    evidence.write("results.json", document)
    evidence.seal(signing_key)

    certification.json            the document, the tests and bounds that it came to, the nodes
    inventory.json                driver, NCCL, firmware, kernel and boot id per node
    runs/ID/run.json              what was run
    runs/ID/logs/POD.log          what each pod wrote, without what must not be stored
    runs/ID/parsed.json, observed.json, outcome.json
    plan.json, started.json       what was planned at the begin, and what is under way
    results.json
    manifest.json, manifest.json.sig

A run is there as a whole or not at all, whenever the process dies. While anything is being changed there is no
manifest.json, so that evidence which is half written never verifies.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import tempfile
from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.certification import storedlogs
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.streams import Text
from ansible_collections.goodput.fleet.plugins.module_utils.records import closedworld, digest, durable, signing
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    InvalidDocument,
    Problem,
    Tampered,
)

CERTIFICATION = "certification.json"
MANIFEST = "manifest.json"
SIGNATURE = "manifest.json.sig"
API = "goodput.fleet/v1alpha1"
_ASIDE = (MANIFEST, SIGNATURE)
_RUN_ID = re.compile(r"[0-9a-f]{12,64}")
_POD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_WORDS = closedworld.Words(
    folder="evidence",
    changed="was changed after it was recorded",
    again="do not rely on it: run the certification again",
    extra="it is no part of the evidence: find out who added it",
    link="evidence holds no links: find out who added it",
)


def identity(certification: Mapping, categories: Iterable[Mapping], nodes: Iterable[str]) -> str:
    """`sha256:HEX` over the spec, the tests and bounds it came to, and the set of nodes."""
    spec = {"spec": certification["spec"], "categories": list(categories), "nodes": sorted(set(nodes))}
    return digest.sha256(_finite(spec))


class Evidence:
    """One certification's folder, held by one process at a time."""

    def __init__(self, path: str, about: Mapping, handle: int):
        self.path, self.about, self._handle = path, about, handle

    @classmethod
    def open(cls, base: str, certification: Mapping, categories: Iterable[Mapping], nodes: Iterable[str]) -> Evidence:
        """Makes the folder, or continues the one of an equal certification.

        certification: {metadata: {name}, spec}; categories: as planned, with resolved tests and bounds. Raises
        Conflict where another process works on it or the folder is another certification's, Tampered where sealed
        evidence was changed, Unavailable where the disk refuses.
        """
        name, categories = certification["metadata"]["name"], list(categories)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidDocument(f"{name!r} is not a name", path="metadata.name", hint="such as nightly-h100")
        about = {
            "apiVersion": API,
            "kind": "CertificationEvidence",
            "identity": identity(certification, categories, nodes),
            "certification": {"metadata": certification["metadata"], "spec": certification["spec"]},
            "categories": categories,
            "nodes": sorted(set(nodes)),
        }
        path = os.path.join(base, f"{name}-{about['identity'].removeprefix('sha256:')[:12]}")
        with durable.disk(path):
            os.makedirs(path, exist_ok=True)
            handle = durable.lock(path)
            try:
                for left in durable.unfinished(path):
                    durable.remove(left)
                # what was sealed is not taken up, and sealed again, with somebody else's changes
                if os.path.lexists(os.path.join(path, MANIFEST)) and (problems := verify(path)):
                    raise Tampered(problems)
                there = _load(os.path.join(path, CERTIFICATION))
                if there is None:
                    _discard_seal(path)
                    durable.replace(path, CERTIFICATION, pretty(about))
                elif _identity_of(there) != about["identity"]:
                    what = "holds the evidence of another certification, or was changed"
                    raise Conflict(Problem("other-evidence", what, path, hint="name another folder"))
            except BaseException:
                os.close(handle)
                raise
        return cls(path, there or about, handle)

    def close(self) -> None:
        """Lets other processes in."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> Evidence:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    # ------------------------------------------------------------ runs

    def finished(self, run: Mapping) -> object | None:
        """The outcome that is stored for exactly this run; None where it has to be run."""
        stored = self.load(run["id"])
        return stored["outcome"] if stored and _equal(stored["run"], run) else None

    def load(self, run_id: str) -> dict | None:
        """{run, parsed, observed, outcome} as they were recorded; None where there is no such run."""
        return _load_run(self.path, run_id)

    def runs(self) -> list[str]:
        """Ids of the recorded runs."""
        with durable.disk(self.path), contextlib.suppress(FileNotFoundError):
            return sorted(name for name in os.listdir(os.path.join(self.path, "runs")) if _RUN_ID.fullmatch(name))
        return []

    def record(self, run: Mapping, logs: Mapping[str, Text], parsed: object, observed: object, outcome: object) -> None:
        """Stores a run that is over. `logs`: what each pod wrote. A run that is there already is replaced."""
        place = os.path.join(self.path, "runs", _run_id(run["id"]))
        for pod in logs:
            if not _POD.fullmatch(pod):
                raise InvalidDocument(f"{pod!r} is not the name of a pod", path="logs", hint="such as gp-1f2e-0")
        parts = {"run": run, "parsed": parsed, "observed": observed, "outcome": outcome}
        with durable.disk(place):
            work, old = (tempfile.mkdtemp(prefix=durable.UNFINISHED, dir=self.path) for _each in range(2))
            try:
                os.chmod(work, 0o755)
                for pod, text in sorted(logs.items()):
                    os.makedirs(os.path.join(work, "logs"), exist_ok=True)
                    _store(os.path.join(work, "logs", f"{pod}.log"), text)
                for name, data in parts.items():
                    durable.write(os.path.join(work, f"{name}.json"), pretty(data))
                durable.sync_folders(work)
                _discard_seal(self.path)
                os.makedirs(os.path.dirname(place), exist_ok=True)
                if os.path.lexists(place):
                    os.rename(place, old)
                os.rename(work, place)
            finally:
                durable.remove(work)
                durable.remove(old)
            durable.sync(os.path.dirname(place))

    # ------------------------------------------------------------ the whole

    def write(self, name: str, data: object) -> None:
        """A file beside the runs: bytes as they are, other data as JSON. Equal content changes nothing."""
        fault = closedworld.unsafe(name, _WORDS.folder)
        if not fault and (name in (*_ASIDE, CERTIFICATION) or name.split("/")[0] == "runs" or name.startswith(".")):
            fault = f"is kept by the evidence itself: {name!r}"
        if fault:
            raise InvalidDocument(f"the file {fault}", path="name", code="unsafe-path")
        content = data if isinstance(data, bytes) else pretty(data)
        path = os.path.join(self.path, name)
        with durable.disk(path):
            if closedworld.read(path) != content:
                _discard_seal(self.path)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                durable.replace(self.path, name, content)

    def read(self, name: str) -> object | None:
        """What `write` stored; None where there is nothing, or nothing that can be read."""
        return _load(os.path.join(self.path, name))

    def seal(self, signing_key: str | None = None) -> str:
        """Writes the manifest, signed by the Ed25519 key (PEM) if there is one; its `sha256:HEX`.

        The same files give the same manifest; without a key a signature of it stays. Raises InvalidDocument.
        """
        with durable.disk(self.path):
            durable.drop_empty(self.path)
            files = {
                path: closedworld.digest(os.path.join(self.path, path))
                for path, _mode in closedworld.entries(self.path)
                if path not in _ASIDE and not os.path.isdir(os.path.join(self.path, path))
            }
            content = pretty(
                {
                    "apiVersion": API,
                    "kind": "EvidenceManifest",
                    "name": self.about["certification"]["metadata"]["name"],
                    "identity": self.about["identity"],
                    "files": files,
                }
            )
            # an empty key is refused: it must not leave the evidence unsigned
            signature = signing.sign(content, signing_key) if signing_key is not None else None
            here = [closedworld.read(os.path.join(self.path, name)) for name in _ASIDE]
            # who looks again without the key leaves the signature of what has not changed
            if here != [content, signature] and not (signature is None and here[0] == content):
                _discard_seal(self.path)
                if signature is not None:
                    durable.replace(self.path, SIGNATURE, signature)
                durable.replace(self.path, MANIFEST, content)
        return digest.sha256_bytes(content)


def earlier(base: str, run: Mapping) -> dict | None:
    """{run, parsed, observed} of an equal run that any certification below `base` has recorded.

    Its outcome was judged by that certification's bounds, and is not given.
    """
    with durable.disk(base), contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(base)):
            stored = _load_run(os.path.join(base, name), run["id"])
            if stored and _equal(stored["run"], run):
                return {key: stored[key] for key in ("run", "parsed", "observed")}
    return None


def verify(path: str, public_key: str | None = None) -> list[Problem]:
    """Every way in which a folder is not the evidence that was sealed; nothing when it is. Only reads.

    With a key (PEM) the signature must be there and be its own. Raises InvalidDocument for a bad key.
    """
    if not os.path.isdir(path):
        return [Problem("no-evidence", "is not a folder", path, hint="name the folder of one certification")]
    content = closedworld.read(os.path.join(path, MANIFEST))
    if content is None:
        what = f"holds no {MANIFEST}, so it is no evidence or its certification is not over"
        return [Problem("no-evidence", what, path, hint="run the certification again: it goes on where it was")]
    listed, problems = _listed(content)
    if not problems:
        problems += closedworld.compare(path, listed, _ASIDE, _WORDS)
    stated = closedworld.read(os.path.join(path, SIGNATURE))
    if public_key is not None and stated is None:
        what = "is not signed, and a public key was given"
        problems.append(Problem("not-signed", what, path, hint="seal it with a signing key"))
    elif public_key is not None:
        problems += signing.check(content, stated, public_key, MANIFEST, "do not rely on it; find out who changed it")
    return sorted(problems, key=lambda problem: (problem.file or "", problem.line or 0))


def _listed(content: bytes) -> tuple[dict[str, str], list[Problem]]:
    try:
        data = json.loads(content)
        files = data["files"]
        sound = data["kind"] == "EvidenceManifest" and all(
            re.fullmatch("[0-9a-f]{64}", hexa) for hexa in files.values()
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        sound = False
    if not sound:
        return {}, [Problem("bad-list", "is not a manifest of evidence", MANIFEST, hint=_WORDS.again)]
    faults = [fault for fault in (closedworld.unsafe(name, _WORDS.folder) for name in files) if fault]
    faults += [f"lists {name}, which it cannot hold" for name in _ASIDE if name in files]
    faults += [] if CERTIFICATION in files else [f"does not list {CERTIFICATION}"]
    return files, [Problem("bad-list", f"the file {fault}", MANIFEST, hint=_WORDS.again) for fault in faults]


def pretty(data: object) -> bytes:
    """JSON for people, with sorted keys: same data, same bytes. What is no number is null."""
    text = json.dumps(_finite(data), indent=1, ensure_ascii=False, sort_keys=True, allow_nan=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _finite(data: object) -> object:
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, Mapping):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple, set, frozenset)):
        return [_finite(value) for value in (data if isinstance(data, (list, tuple)) else sorted(data))]
    return data


def _identity_of(about: Mapping) -> str | None:
    """Of what is stored, not what it says of itself."""
    try:
        return identity(about["certification"], about["categories"], about["nodes"])
    except (KeyError, TypeError, ValueError):
        return None


def _equal(stored: object, run: Mapping) -> bool:
    """Whether what was recorded is this run: what runs, on which nodes, which repeat. Bounds are the identity's."""
    if not isinstance(stored, Mapping):
        return False
    return all(_finite(stored.get(key)) == _finite(run.get(key)) for key in ("id", "spec", "nodes", "repeat"))


def _run_id(text: str) -> str:
    if not isinstance(text, str) or not _RUN_ID.fullmatch(text):
        raise InvalidDocument(f"{text!r} is not the id of a run", path="run.id", hint="12 digits in hex")
    return text


def _discard_seal(path: str) -> None:
    for name in _ASIDE:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(path, name))


def _load_run(path: str, run_id: str) -> dict | None:
    folder = os.path.join(path, "runs", _run_id(run_id))
    names = ("run", "parsed", "observed", "outcome")
    try:
        return {name: json.loads(durable.read(os.path.join(folder, f"{name}.json"))) for name in names}
    except (OSError, ValueError):
        return None  # not there, or not as it was recorded, and so no reason to leave the run out


def _load(path: str) -> Mapping | None:
    """A stored document; None where there is none that was written to its end."""
    try:
        data = json.loads(durable.read(path))
    except (FileNotFoundError, ValueError):
        return None
    return data if isinstance(data, Mapping) else None


def _store(path: str, text: Text) -> None:
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as stream:
        for line in storedlogs.stored(text):
            stream.write(line + "\n")
        durable.flush(stream)
