# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a bundle depends on besides the lock, checked as a whole."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem, nearest

_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_HOST = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?"
_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_URL = rf"https?://{_HOST}(/[A-Za-z0-9._~%+-]+)*/?"
_SSH = rf"ssh://([A-Za-z0-9._-]+@)?{_HOST}(/[A-Za-z0-9._~%+-]+)+/?"
_SCP = r"[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[A-Za-z0-9._~/+-]+"

# option -> what its text must look like as a whole, and how to say so
_FORMS = {
    "repo_url": (rf"{_URL}|{_SSH}|{_SCP}", "https://HOST/PATH, ssh://git@HOST/PATH or git@HOST:PATH, no password"),
    "revision": (r"(?![-/])(?!.*(\.\.|//|@\{))[A-Za-z0-9._/@+-]*[A-Za-z0-9]", "a branch, a tag or a commit"),
    "path": (rf"\.|(\./)?{_SEGMENT}(/{_SEGMENT})*/?", "a folder of the repository, as clusters/prod-1; . is its root"),
    "mirror_charts": (rf"(https?|oci)://{_HOST}(/{_SEGMENT})*/?", "https://HOST/PATH or oci://HOST/PATH"),
    # a first part without a dot or a port is an image of docker.io, to whoever pulls it
    "mirror_images": (
        rf"(?=[^/]*[.:]|localhost(/|$)){_HOST}(/[a-z0-9]+([._-]+[a-z0-9]+)*)*/?",
        "HOST or HOST/PREFIX without a scheme, such as registry.example.com/mirror",
    ),
    "project": (_LABEL, "the name of an Argo CD project"),
    "argocd_namespace": (_LABEL, "a namespace"),
    "destination_server": (rf"https?://{_HOST}(/{_SEGMENT})*/?", "the URL of a Kubernetes API server"),
    "name_prefix": (r"([a-z0-9]([-a-z0-9]{0,30}))?", "lower-case letters, digits and -"),
    "flux_namespace": (_LABEL, "a namespace"),
    "source_name": (_LABEL, "the name of a GitRepository"),
    "source_namespace": (_LABEL, "a namespace"),
    "interval": (r"([0-9]+(ms|s|m|h))+", "a duration such as 10m"),
    "drift_detection": (r"enabled|warn|disabled", "enabled, warn or disabled"),
}
_NEEDED = ("revision", "project", "argocd_namespace", "destination_server", "flux_namespace", "source_name",
           "source_namespace", "interval", "drift_detection")  # fmt: skip


@dataclass(frozen=True)
class Options:
    """Every deployer reads what it needs. Times in seconds; an empty text means not given."""

    repo_url: str = ""  # the Git repository that the bundle is committed to
    revision: str = "main"
    path: str = ""  # the bundle's folder in that repository
    exclude: tuple[str, ...] = ()
    mirror_charts: str = ""
    mirror_images: str = ""
    timeout: int = 600  # for one release
    timeouts: Mapping[str, int] = field(default_factory=dict)  # by component
    # Argo CD
    project: str = "default"
    argocd_namespace: str = "argocd"
    destination_server: str = "https://kubernetes.default.svc"
    name_prefix: str = ""
    prune: bool = True
    self_heal: bool = True
    cascade: bool = False
    # Flux
    flux_namespace: str = "flux-system"
    source_name: str = "flux-system"
    source_namespace: str = "flux-system"
    interval: str = "10m"
    retries: int = 3
    drift_detection: str = "warn"

    def seconds(self, component: str) -> int:
        """How long a release of the component may take."""
        return self.timeouts.get(component, self.timeout)

    def folder(self, name: str) -> str:
        """A folder of the bundle, seen from the root of the repository."""
        root = self.path.rstrip("/").removeprefix("./")
        return name if root in ("", ".") else f"{root}/{name}"


def read(given: Mapping) -> Options:
    """Options of a mapping with the fields' names; None means not given. Raises InvalidDocument with every problem."""
    names = {entry.name for entry in fields(Options)}
    problems = [
        Problem("unknown-key", f"{name!r} is no option of a bundle", path=name, hint=nearest(name, names))
        for name in given
        if name not in names
    ]
    options = Options(**{name: value for name, value in given.items() if name in names and value is not None})
    for name, (form, right) in _FORMS.items():
        value = getattr(options, name)
        if not value and name not in _NEEDED:
            continue
        if not isinstance(value, str) or not re.fullmatch(form, value):
            problems.append(Problem("bad-value", f"{_show(name, value)} is malformed", path=name, hint=right))
    times = {"timeout": options.timeout, **{f"timeouts.{name}": value for name, value in options.timeouts.items()}}
    for name, value in times.items():
        if not _whole(value) or not 0 < value <= 86400:
            problems.append(Problem("bad-value", f"{value!r} is malformed", path=name, hint="1 to 86400 seconds"))
    if not _whole(options.retries) or options.retries < -1:
        what = f"{options.retries!r} is malformed"
        problems.append(Problem("bad-value", what, path="retries", hint="-1 (endless) or more"))
    if problems:
        raise InvalidDocument(problems)
    return options


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def check_names(options: Options, components: list[str]) -> None:
    """Raises InvalidDocument where an option names a component that the lock does not have."""
    problems = [
        Problem("unknown-component", f"the lock has no component {name!r}", path=path, hint=nearest(name, components))
        for path, names in (("exclude", options.exclude), ("timeouts", options.timeouts))
        for name in names
        if name not in components
    ]
    if problems:
        raise InvalidDocument(problems)


def need_repository(options: Options, users: list[str], url: bool) -> None:
    """Raises InvalidDocument when `users`, things that a deployer reads from Git, lack the place they are read from."""
    what = ", ".join(users[:5]) + (f" and {len(users) - 5} more" if len(users) > 5 else "")
    problems = [
        Problem("missing-option", f"{name} is needed: the deployer reads {what} from the Git repository", path=name,
                hint=_FORMS[name][1])
        for name in (("repo_url", "path") if url else ("path",))
        if users and not getattr(options, name)
    ]  # fmt: skip
    if problems:
        raise InvalidDocument(problems)


def _show(name: str, value: object) -> str:
    """The value for a message; what may hold a password is not repeated."""
    text = repr(value)
    return f"the {name.replace('_', ' ')}" if "@" in text or len(text) > 80 else text
