"""Markup and sentences in texts: finding them."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LONE_TAGS = "br|hr|img|p|li|td|tr|th|dd|dt"
_PAIRED_TAGS = (
    "a|abbr|b|big|blockquote|caption|center|cite|code|del|div|dl|em|font|h[1-6]|i|ins|kbd|mark|ol|pre"
    "|samp|small|span|strike|strong|sub|sup|table|tbody|thead|tt|u|ul"
)
_LONE_TAG = re.compile(rf"</?(?:{_LONE_TAGS})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_PAIRED_TAG = re.compile(rf"</?({_PAIRED_TAGS})(?:\s[^<>]*)?>", re.IGNORECASE)
_CLOSING_TAG = re.compile(rf"</({_PAIRED_TAGS})\s*>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|ndash|mdash|hellip|#\d{2,5}|#x[0-9a-f]{2,5});")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\d\"'(\[<*`])|\n+")
_FEWEST_WORDS = 4


def markup(text: str) -> tuple[str, ...]:
    """The HTML tags, comments and entities of ``text``; names in angle brackets are not HTML.

    Example:
        >>> markup("<p>The <b>city</b> &amp; <country></p>")
        ('<b>', '</b>', '<p>', '</p>', '&amp;')
    """
    if "<" not in text and "&" not in text:
        return ()
    closed = _closed(text)
    paired = [tag[0] for tag in _PAIRED_TAG.finditer(text) if tag[1].lower() in closed]
    lone = [found[0] for rule in (_LONE_TAG, _ENTITY) for found in rule.finditer(text)]
    return (*paired, *lone, *(text[start:end] for start, end in _comments(text)))


def _comments(text: str) -> Iterator[tuple[int, int]]:
    """Where HTML comments stand; one that is not closed is none."""
    end = 0
    while (start := text.find("<!--", end)) >= 0:
        close = text.find("-->", start)
        if close < 0:
            return
        end = close + len("-->")
        yield start, end


def _closed(text: str) -> frozenset[str]:
    """Tags that are closed somewhere; ``<code>`` and the like are placeholders unless they are."""
    return frozenset(name.lower() for name in _CLOSING_TAG.findall(text))


def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, and its lines, without blanks around them.

    Example:
        >>> sentences("Get a user. Use 3.5 as version, e.g. for tests.")
        ('Get a user.', 'Use 3.5 as version, e.g. for tests.')
    """
    return tuple(filter(None, (piece.strip() for piece in _SENTENCE.split(text))))


def sentence_key(sentence: str) -> str:
    """What two sentences have in common when they are the same; empty for short ones."""
    words = sentence.casefold().strip(" .!?").split()
    return " ".join(words) if len(words) >= _FEWEST_WORDS else ""
