"""Every block of README.md and docs/*.md runs, top to bottom, one namespace a page.

* ``python`` blocks are executed; lines ``#> text`` are what the block prints (``...`` stands for
  anything). ``python {weights}`` runs only where the small local model is installed, and
  ``python {interop=package}`` where that package is, in ``tests/interop``: the frameworks that our
  tools are handed to want other versions of what they share, so each has an environment of its own.
* In ``console`` and ``bash`` blocks each command that starts with ``agentkit``, or with
  ``agentkit-train`` where that is installed, is run by a shell and has to succeed; what a console block shows below it is compared with what it prints. Commands that
  install, build or measure are shown only; any other word at the start of a line is a mistake.
* ``{no-run}`` leaves a block out; the HTML comment above it says why.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from agentkit.cli.main import main
from agentkit.errors import FetchError

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<kind>\w+) *(?P<flags>\{[^}]*\})?\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
KNOWN_FLAGS = {"weights", "no-run"}
OURS = ("agentkit ", "agentkit-train ")
NEEDS_A_SHELL = frozenset("|<>&;$*`~")
SHOWN_ONLY = ("pip install ", "make ", "python ", "torchrun ", "uvx ")


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block.

    Attributes:
        kind: The language after the fence.
        flags: The words in braces behind it.
        line: Line of the page on which the text starts, from 1.
        text: What is inside.
        reason: The HTML comment right above, if there is one.
    """

    kind: str
    flags: frozenset[str]
    line: int
    text: str
    reason: str


def blocks_of(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    for match in FENCE.finditer(page):
        above = page[: match.start()].rstrip()
        comment = re.search(r"<!--((?:(?!-->).)*)-->$", above, re.DOTALL)
        yield Block(
            kind=match["kind"],
            flags=frozenset((match["flags"] or "{}").strip("{}").split()),
            line=page[: match.start("text")].count("\n") + 1,
            text=match["text"],
            reason=comment[1].strip() if comment else "",
        )


def expected_output(block: Block) -> str:
    """The ``#>`` lines of a block."""
    lines = [line.strip() for line in block.text.splitlines() if line.strip().startswith("#>")]
    return "".join(f"{line[2:].removeprefix(' ').rstrip()}\n" for line in lines)


def assert_same_output(where: str, want: str, got: str) -> None:
    """Compare texts line by line; ``...`` matches anything, white space at line ends nothing."""
    got = "".join(f"{line.rstrip()}\n" for line in got.splitlines())
    flags = doctest.ELLIPSIS
    checker = doctest.OutputChecker()
    if not checker.check_output(want, got, flags):
        difference = checker.output_difference(doctest.Example("", want), got, flags)
        pytest.fail(f"{where}: the page shows other output\n{difference}", pytrace=False)


def run_python(path: Path, block: Block, module: ModuleType) -> None:
    """Execute a block in the page's namespace, with the page's line numbers."""
    source = "\n" * (block.line - 1) + block.text
    code = compile(source, str(path), "exec", dont_inherit=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, vars(module))
    if want := expected_output(block):
        assert_same_output(f"{path.name}:{block.line}", want, printed.getvalue())


def commands_of(block: Block) -> Iterator[tuple[str, str]]:
    """Each command of ours of a shell block with the output shown below it."""
    command, shown = "", ""
    for line in f"{block.text}$ end\n".splitlines(keepends=True):
        if command.endswith("\\\n"):
            command += line
        elif line.startswith("$ ") or (block.kind == "bash" and line.startswith(OURS)):
            if command.startswith(OURS):
                yield command, shown
            command, shown = line.removeprefix("$ "), ""
        else:
            shown += line


def unknown_commands(block: Block) -> list[str]:
    """Lines that look like commands and would be left out without a word."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.kind == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    known = (*OURS, "#", *SHOWN_ONLY)
    return [line for line in lines if line.strip() and not line.startswith(known)]


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What came of a command."""

    status: int
    stdout: str
    stderr: str


def run_in_shell(command: str, folder: Path) -> Ran:
    """Run a command in a shell whose ``agentkit`` is the one under test."""
    bin_folder = Path(sys.executable).parent
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=100,
        check=False,
    )
    return Ran(status=done.returncode, stdout=done.stdout, stderr=done.stderr)


def run_here(command: str) -> Ran:
    """Run ``agentkit ...`` in this process and its folder: most commands take less than a start."""
    words = shlex.split(command.replace("\\\n", " "))
    done = CliRunner().invoke(main, words[1:], prog_name="agentkit", catch_exceptions=False)
    return Ran(status=done.exit_code, stdout=done.stdout, stderr=done.stderr)


def run_commands(path: Path, block: Block, folder: Path) -> None:
    """Run a block's commands; those of the first page exactly as a reader does, in a shell."""
    unknown = unknown_commands(block)
    assert not unknown, f"{path.name}:{block.line} has commands that nothing runs: {unknown}"
    for command, shown in commands_of(block):
        is_plain = command.startswith("agentkit ") and not NEEDS_A_SHELL & set(command)
        is_here = is_plain and path.stem != "quickstart"
        done = run_here(command) if is_here else run_in_shell(command, folder)
        where = f"{path.name}:{block.line} $ {command.strip()}"
        assert done.status == 0, f"{where}\n{done.stdout}{done.stderr}"
        if block.kind == "console" and shown.strip():
            assert_same_output(where, shown.rstrip() + "\n", done.stdout.rstrip() + "\n")


def run_page(path: Path, folder: Path, *, weights: bool, interop: str = "") -> None:
    """Run the blocks of one page in order, without those that need what is not there.

    Args:
        path: The page.
        folder: Where its commands run.
        weights: Whether the local model is there.
        interop: The package whose environment this is; empty for none.
    """
    module = ModuleType("docs_page")
    sys.modules["docs_page"] = module  # dataclasses and pydantic look their module up by name
    try:
        for block in blocks_of(path.read_text(encoding="utf-8")):
            needed = {flag for flag in block.flags if flag.startswith("interop=")}
            flags = block.flags - needed
            assert flags <= KNOWN_FLAGS, f"{path.name}:{block.line} has {set(block.flags)}"
            if "no-run" in block.flags:
                assert block.reason, f"{path.name}:{block.line} says no-run, but not why"
            elif needed and f"interop={interop}" not in needed:
                assert block.reason, f"{path.name}:{block.line} names a framework, but not why"
            elif "weights" in block.flags and not weights:
                continue
            elif block.kind == "python":
                run_python(path, block, module)
            elif block.kind in {"console", "bash"}:
                run_commands(path, block, folder)
    finally:
        del sys.modules["docs_page"]
        for name, loaded in list(sys.modules.items()):  # the page's own files
            if str(getattr(loaded, "__file__", None)).startswith(str(folder)):
                del sys.modules[name]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A fresh working directory with its own library, no keys and a terminal of fixed width."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTKIT_STORE", f"sqlite:///{tmp_path / 'agentkit.db'}")
    monkeypatch.setenv("COLUMNS", "100")
    bin_folder = Path(sys.executable).parent  # commands of a page start the Python under test
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    return tmp_path


# A page of the command line starts dozens of processes, one after the other.
@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_runs(path, folder):
    """A reader who types a page from top to bottom sees what it shows."""
    run_page(path, folder, weights=False)


WITH_WEIGHTS = [
    path
    for path in PAGES
    if any("weights" in block.flags for block in blocks_of(path.read_text(encoding="utf-8")))
]


@pytest.mark.weights
@pytest.mark.parametrize("path", WITH_WEIGHTS, ids=lambda path: path.stem)
def test_page_runs_with_the_local_model(path, folder):
    """The blocks that need the small local model run as well."""
    try:
        run_page(path, folder, weights=True)
    except FetchError as error:  # the weights are here, the public questions are not
        pytest.skip(str(error))


SAMPLE = """# A page

```python
total = 1 + 1
```

Text.

```python
for number in (total, 3):
    print(number)
#> 2
#> {last}
```

<!-- needs a key -->
```console {{no-run}}
$ agentkit run "Hello"
```
"""


def test_the_runner_accepts_a_good_page(folder):
    """Blocks share a namespace, output is compared, a reasoned no-run block is left out."""
    page = folder / "page.md"
    page.write_text(SAMPLE.format(last="3"), encoding="utf-8")
    run_page(page, folder, weights=False)


def test_the_runner_can_fail(folder):
    """Wrong output, a failing block, a failing command and an unreasoned no-run are each found."""
    page = folder / "page.md"
    for text, symptom in [
        (SAMPLE.format(last="4"), "shows other output"),
        ("```python\nraise RuntimeError('boom')\n```\n", "boom"),
        ("```console\n$ agentkit no-such-command\n```\n", "no-such-command"),
        ("```console\n$ agentkit --version\nseventeen\n```\n", "shows other output"),
        ("```console\n$ KEY=1 agentkit --version\n```\n", "nothing runs"),
        ("```bash\nKEY=1 agentkit --version\n```\n", "nothing runs"),
        ("```python {no-run}\nx\n```\n", "not why"),
        ("```python {weight}\nx\n```\n", "weight"),
    ]:
        page.write_text(text, encoding="utf-8")
        with pytest.raises((AssertionError, RuntimeError, pytest.fail.Exception), match=symptom):
            run_page(page, folder, weights=False)


def test_traceback_points_into_the_page(folder):
    """An error in a block carries the line of the page."""
    page = folder / "page.md"
    page.write_text("# A\n\n```python\nx = 1\nx.y\n```\n", encoding="utf-8")
    with pytest.raises(AttributeError) as caught:
        run_page(page, folder, weights=False)
    assert caught.traceback[-1].lineno + 1 == 5
