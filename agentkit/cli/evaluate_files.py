"""The files of ``agentkit eval``: what the questions are made of, and where reports are written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import click

from agentkit.cli.output import say
from agentkit.episodes.replacing import replaced
from agentkit.evaluation.loading import is_benchmark_name
from agentkit.evaluation.results.comparison import Comparison
from agentkit.evaluation.results.markdown import comparison_markdown, report_markdown
from agentkit.evaluation.results.page import comparison_html, report_html
from agentkit.evaluation.results.report import EvaluationReport

_REPORTS: Mapping[str, Callable[[EvaluationReport], str]] = {
    ".html": report_html,
    ".md": report_markdown,
}
_COMPARISONS: Mapping[str, Callable[[Comparison], str]] = {
    ".html": comparison_html,
    ".md": comparison_markdown,
}


def question_files(benchmark: str, code: Iterable[str | None]) -> tuple[str, ...]:
    """The user's own files that a run depends on, each with a digest of its content.

    A run is gone on with under its name. When a gold answer or a tool has changed in between, old
    and new answers do not belong together, and two files ``tasks.jsonl`` are not one benchmark.

    Args:
        benchmark: A benchmark's name, or a file of tasks.
        code: Each ``FILE.py`` or ``FILE.py:NAME``, or a module, which stands for itself.
    """
    found = () if is_benchmark_name(benchmark) else (_marked(benchmark),)
    return (*found, *(_marked(target) for target in code if target is not None))


def _marked(target: str) -> str:
    file, _, name = target.rpartition(":")
    for path, suffix in ((Path(target), ""), (Path(file), f":{name}")):
        if path.expanduser().is_file():
            content = path.expanduser().read_bytes()
            return f"{path.name}{suffix} {hashlib.sha256(content).hexdigest()[:8]}"
    return target


def check_report_files(paths: Sequence[Path]) -> None:
    """Make sure, before anything is asked, that reports can be written.

    Raises:
        click.UsageError: A name does not end in .html or .md, or its folder does not exist.
    """
    wrong = [str(path) for path in paths if path.suffix.lower() not in _REPORTS]
    if wrong:
        raise click.UsageError(
            f"--report writes .html and .md files, and {', '.join(wrong)} is neither"
        )
    for path in paths:
        if not path.expanduser().parent.is_dir():
            raise click.UsageError(f"--report {path}: there is no folder {path.parent}; make it")


def write_report(shown: EvaluationReport | Comparison, paths: Sequence[Path]) -> None:
    """Write a report or a comparison to each file, in the format that its name says."""
    for path in paths:
        suffix = path.suffix.lower()
        if isinstance(shown, Comparison):
            text = _COMPARISONS[suffix](shown)
        else:
            text = _REPORTS[suffix](shown)
        with replaced(path.expanduser()) as draft:
            draft.write_text(text, encoding="utf-8")
        say(f"written: {path}")
