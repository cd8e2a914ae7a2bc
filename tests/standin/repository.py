# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Helm chart repository over http on loopback: a folder of archives, and index.yaml with their digests."""

from __future__ import annotations

import functools
import hashlib
import http.server
import tarfile
import threading
from pathlib import Path

import yaml

EPOCH = "1970-01-01T00:00:00Z"  # the index must be the same for the same archives


class ChartRepository:
    """Serves the .tgz files of `folder` at `url` while the context is open. `requests` notes each path asked for.

    Charts that are added later appear after write_index(folder).
    """

    def __init__(self, folder: str | Path, port: int = 0):
        self.folder = Path(folder)
        self.requests: list[str] = []
        write_index(self.folder)
        handler = functools.partial(_Handler, self.requests, directory=str(self.folder))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> ChartRepository:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, requests: list[str], *args, **kwargs):
        self._requests = requests
        super().__init__(*args, **kwargs)

    def do_GET(self):
        self._requests.append(self.path)
        super().do_GET()

    def list_directory(self, path):
        self.send_error(404)  # a chart repository has no pages

    def log_message(self, *args):
        pass


def store(folder: str | Path, archives: dict[str, bytes]) -> None:
    """Write the archives and the index that lists them; other archives in the folder go."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for stale in {path.name for path in folder.glob("*.tgz")} - set(archives):
        (folder / stale).unlink()
    for name, content in archives.items():
        (folder / name).write_bytes(content)
    write_index(folder)


def write_index(folder: Path) -> None:
    """index.yaml as Helm reads it, newest file content, addresses relative to it."""
    entries: dict[str, list[dict]] = {}
    for path in sorted(folder.glob("*.tgz")):
        content = path.read_bytes()
        with tarfile.open(path) as tar:
            heads = [name for name in tar.getnames() if name.endswith("/Chart.yaml")]
            head = yaml.safe_load(tar.extractfile(min(heads, key=len)).read())  # longer ones are of subcharts
        digest = hashlib.sha256(content).hexdigest()
        entries.setdefault(head["name"], []).append({**head, "urls": [path.name], "digest": digest, "created": EPOCH})
    index = {"apiVersion": "v1", "generated": EPOCH, "entries": entries}
    partial = folder / "index.yaml.partial"
    partial.write_text(yaml.safe_dump(index))
    partial.replace(folder / "index.yaml")
