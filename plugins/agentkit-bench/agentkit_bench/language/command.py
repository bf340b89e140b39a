"""``agentkit bench language``: how the words of tools changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import click

from agentkit.cli.options import AsJson, StoreUrl, command, option
from agentkit.cli.output import print_json, say
from agentkit.cli.stores import opened_to_read
from agentkit_bench.language.pages import language_html, language_markdown, print_language
from agentkit_bench.language.report import LanguageReport, Measures, histories_of, language_report

_PAGES: Mapping[str, Callable[[LanguageReport], str]] = {
    ".html": language_html,
    ".md": language_markdown,
}


@command()
def language(
    *,
    store_url: StoreUrl,
    tool: tuple[str, ...] = (),
    report: Annotated[
        tuple[Path, ...], option(type=click.Path(path_type=Path, dir_okay=False))
    ] = (),
    as_json: AsJson,
) -> None:
    """See how the words of tools changed over their revisions.

    How large each edit was, whether edits get smaller, whether the meaning stayed, and what became
    of vocabulary, depth of sentences and cost in tokens. No model is asked. With the extra
    'vectors' meaning is compared by word vectors, without it by shared terms.

    Args:
        store_url: Where the library is.
        tool (NAME): Only this tool, also one that was removed, with what changed word by word.
        report (FILE): Also write the report here, as .html or .md.
        as_json: Print JSON.

    Examples:
      agentkit bench language
      agentkit bench language --tool loan_terms
      agentkit bench language --report words.html --report words.md
      agentkit bench language --json > words.json
    """
    _check(report)
    with opened_to_read(store_url) as store:
        histories = histories_of(store, tool)
    found = language_report(histories, Measures.installed())
    if as_json:
        print_json(found.to_json())
    else:
        print_language(found, in_words=bool(tool))
    for path in report:
        text = _PAGES[path.suffix.lower()](found)
        path.expanduser().write_text(text, encoding="utf-8")
        say(f"written: {path}")


def _check(files: Sequence[Path]) -> None:
    """Make sure that reports can be written before there is anything to write."""
    for path in files:
        if path.suffix.lower() not in _PAGES:
            raise click.UsageError(f"--report writes .html and .md files, and {path} is neither")
        if not path.expanduser().parent.is_dir():
            raise click.UsageError(f"--report {path}: there is no folder {path.parent}; make it")
