"""Install each extra alone in a fresh environment and make a tool call: ``alone.py [EXTRA...]``.

First each call is tried without any extra: it has to end by naming the one that it lacks.

Downloads packages, so it is no part of the tests; ``make test-extras`` runs it. The cheap check of
the same is ``test_extras_alone.py``. To try the oldest versions that an extra allows, name them in
a file (``pyyaml==6.0``) and the file in ``PIP_CONSTRAINT``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CALLS = Path(__file__).with_name("calls.py")
EXTRAS = sorted(re.findall(r"^def with_(\w+)", CALLS.read_text(encoding="utf-8"), re.MULTILINE))
BESIDE = {"otel": ("opentelemetry-sdk", "otel_beside_an_sdk")}
"""What is installed beside an extra after its call, and what then makes another."""

_PIP = ("-m", "pip", "--disable-pip-version-check", "-qq")
_LONGEST_SECONDS = 300.0


class Environment:
    """A fresh virtual environment with one requirement and what that brings."""

    def __init__(self, folder: Path, requirement: str) -> None:
        venv.create(folder, with_pip=True)
        self._folder = folder
        self._python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        self.install(requirement)

    def install(self, requirement: str) -> None:
        """Install one more."""
        subprocess.run([self._python, *_PIP, "install", requirement], check=True)

    def run(self, call: str) -> subprocess.CompletedProcess[str]:
        """Make one of the calls."""
        return subprocess.run(
            [self._python, "-W", "ignore", CALLS, call],
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST_SECONDS,
        )


def built(folder: Path) -> Path:
    """Our wheel: one for all environments."""
    wheel = [sys.executable, *_PIP, "wheel", "--no-deps", "--wheel-dir", folder, ROOT]
    subprocess.run(wheel, check=True)
    (path,) = folder.glob("*.whl")
    return path


def works(folder: Path, wheel: Path, extra: str) -> bool:
    """Whether the calls through an extra work where nothing else is; says what they did."""
    fresh = Environment(folder, f"{wheel}[{extra}]")
    is_well = ran_well(fresh, f"with_{extra}")
    if extra in BESIDE:
        requirement, call = BESIDE[extra]
        fresh.install(requirement)
        is_well &= ran_well(fresh, call)
    return is_well


def ran_well(environment: Environment, call: str) -> bool:
    """Whether a call came to its end; shows what it said."""
    made = environment.run(call)
    print(made.stdout if made.returncode == 0 else made.stderr, end="", flush=True)
    return made.returncode == 0


def names_itself(core: Environment, extra: str) -> bool:
    """Whether the call ends by naming the extra that it lacks; says how it ended."""
    made = core.run(f"with_{extra}")
    last = (made.stderr.strip() or "no error").splitlines()[-1]
    print(last, flush=True)
    return made.returncode != 0 and last.endswith(f'pip install "agentkit-evolve[{extra}]"')


def failures(extras: list[str], folder: Path) -> Iterator[str]:
    """What is not well with the extras."""
    wheel = built(folder)
    core = Environment(folder / "core", str(wheel))
    yield from (f"without {extra}" for extra in extras if not names_itself(core, extra))
    for extra in extras:
        began = time.monotonic()
        try:
            is_well = works(folder / extra, wheel, extra)
        except subprocess.SubprocessError as error:
            print(error, flush=True)
            is_well = False
        print(f"{extra}: {time.monotonic() - began:.0f} s", flush=True)
        if not is_well:
            yield extra


def main(extras: list[str]) -> int:
    """Check the extras; the status says whether all is well."""
    with tempfile.TemporaryDirectory(prefix="agentkit-extras-") as folder:
        failed = list(failures(extras, Path(folder)))
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or EXTRAS))
