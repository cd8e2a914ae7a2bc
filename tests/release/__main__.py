"""Run one gate of a release: `python -m tests.release sanity|molecule|package`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build"
BIN = ROOT / ".venv" / "bin"
NAME = "goodput.fleet"

# ansible-test makes virtual environments and wants to download pip; the interpreter's own bundled pip does as well
GET_PIP = """\
import subprocess, sys

args = [a for a in sys.argv[1:] if a not in ("--no-setuptools", "--no-wheel")]
subprocess.check_call([sys.executable, "-m", "ensurepip", "--default-pip"])
subprocess.check_call([sys.executable, "-m", "pip", "install", *args])
"""


def run(*argv, cwd: Path = ROOT, **env: str) -> None:
    """Run and end this gate with the program's status when it fails."""
    print("+", *map(str, argv), flush=True)
    status = subprocess.run(
        [str(arg) for arg in argv], cwd=cwd, env={**os.environ, **env}, stdin=subprocess.DEVNULL
    ).returncode
    if status:
        sys.exit(status)


def sanity() -> None:
    """ansible-test sanity, in a copy of the tree at the path it insists on (a symlink is not enough)."""
    tree = BUILD / "tree" / "ansible_collections" / "goodput" / "fleet"
    shutil.rmtree(tree, ignore_errors=True)
    names = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    for name in filter(None, names.decode().split("\0")):
        # the tests do not ship, and are linted by ruff
        if (ROOT / name).is_file() and (not name.startswith("tests/") or name.startswith("tests/sanity/")):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    run("git", "init", "--quiet", cwd=tree)  # else it asks the repository around it, which ignores this copy
    home = BUILD / "home"  # ansible-test's environments stay in the project's folder
    cache = home / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "get_pip_24_2.py").write_text(GET_PIP)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    run(BIN / "ansible-test", "sanity", "--local", "--python", version, "--color", "no", cwd=tree, HOME=str(home))


def molecule() -> None:
    """Every scenario; their cluster is the embedded one."""
    run(BIN / "molecule", "test", "--all", "--report")


def package() -> None:
    """Build the tarball, check it as Galaxy would, install it elsewhere and read every plugin's documentation there."""
    dist = ROOT / "dist"
    run(BIN / "ansible-galaxy", "collection", "build", "--force", "--output-path", dist)
    version = yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"]
    tarball = dist / f"{NAME.replace('.', '-')}-{version}.tar.gz"
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "galaxy-importer.cfg")
        config.write_text(
            "[galaxy-importer]\nCHECK_REQUIRED_TAGS = True\nCHECK_CHANGELOG = True\nRUN_ANSIBLE_LINT = True\n"
            "RUN_ANSIBLE_TEST = False\nRUN_FLAKE8 = False\n"
        )
        run(BIN / "python", "-m", "galaxy_importer.main", tarball, cwd=Path(folder), GALAXY_IMPORTER_CONFIG=str(config))
        elsewhere = {"ANSIBLE_COLLECTIONS_PATH": folder, "HOME": folder}
        run(
            BIN / "ansible-galaxy",
            "collection",
            "install",
            tarball,
            "-p",
            folder,
            "--offline",
            cwd=Path(folder),
            **elsewhere,
        )
        for kind, names in plugins():
            run(
                BIN / "ansible-doc", "-t", kind, *names, cwd=Path(folder), ANSIBLE_PAGER="cat", PAGER="cat", **elsewhere
            )


def plugins():
    """(type for ansible-doc, full names) of everything the collection offers."""
    for kind, folder, pattern in (
        ("module", "plugins/modules", "*.py"),
        ("filter", "plugins/filter", "*.yml"),
        ("inventory", "plugins/inventory", "*.py"),
        ("role", "roles", "*"),
    ):
        names = sorted({path.stem for path in (ROOT / folder).glob(pattern) if not path.name.startswith("_")})
        if names:
            yield kind, [f"{NAME}.{name}" for name in names]


if __name__ == "__main__":
    gates = {"sanity": sanity, "molecule": molecule, "package": package}
    if len(sys.argv) != 2 or sys.argv[1] not in gates:
        sys.exit(f"one of: {', '.join(gates)}")
    gates[sys.argv[1]]()
