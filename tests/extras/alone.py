"""Install each extra alone in a fresh environment and make one tool call: ``alone.py [EXTRA...]``.

Downloads packages, so it is no part of the tests; ``make test-extras`` runs it. The cheap check of
the same is ``test_extras_alone.py``.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

EXTRAS = ("openai", "anthropic", "fast", "litellm")
ROOT = Path(__file__).parents[2]
CALL = Path(__file__).with_name("tool_call.py")


def check(extra: str, folder: Path) -> bool:
    """Whether one extra works in an environment that holds nothing else."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    for command in ([*install, f"{ROOT}[{extra}]"], [python, "-W", "ignore", CALL, extra]):
        if subprocess.run(command, cwd=folder, check=False).returncode != 0:
            return False
    return True


def main(extras: list[str]) -> int:
    """Check the extras; the status says whether all of them work."""
    failed = []
    for extra in extras or EXTRAS:
        with tempfile.TemporaryDirectory(prefix=f"agentkit-{extra}-") as folder:
            if not check(extra, Path(folder)):
                failed.append(extra)
    if failed:
        print(f"failed alone: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
