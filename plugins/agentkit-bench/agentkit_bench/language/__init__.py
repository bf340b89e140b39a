"""The language report to read: as tables, a Markdown page and an HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit_bench.language.markdown import language_markdown
    from agentkit_bench.language.page import language_html

__all__ = ["language_html", "language_markdown"]

_MODULES = {
    "language_html": "agentkit_bench.language.page",
    "language_markdown": "agentkit_bench.language.markdown",
}

__getattr__ = lazy_door(__name__, _MODULES)
