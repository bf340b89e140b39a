"""A corpus: a catalogue of tools, and questions with the tools that answer them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar

from agentkit.errors import DatasetError, DefinitionError
from agentkit.evaluation.expectations import RecordError
from agentkit.evaluation.task_files import read_json_lines
from agentkit.library import Library
from agentkit.messages import JsonObject
from agentkit.tools.definition import Example, ToolDefinition
from agentkit.tools.sources.json_records import definition_from_json

T = TypeVar("T")

Identity = Literal["id", "name"]
"""What makes two tools of a corpus the same: their ids, or their names alone."""

Split = Literal["dev", "test", "all"]

_DEV_TENTHS = 3
_MARKS = str.maketrans("01", "~^")


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievalQuery:
    """A request and the tools that answer it.

    Attributes:
        query_id: Unique within its file.
        text: What the user says.
        gold: Keys of the right tools (see ``RetrievalCorpus.keys``); empty when none is known.
        category: Where the question comes from, if the file says so.
        unknown_gold: How many gold tools it names that are no tool of the files; it is judged by
            the others, and can only fail where there are none.
    """

    query_id: str
    text: str
    gold: frozenset[str]
    category: str = ""
    unknown_gold: int = 0

    @property
    def split(self) -> Literal["dev", "test"]:
        """Whether the question is for tuning or for the final figures.

        A category that begins with ``dev`` or ``test`` says so itself. Of the others, three
        tenths are dev: those whose id has a SHA-256 with a last decimal digit below 3.
        """
        if self.category.startswith(("dev", "test")):
            return "dev" if self.category.startswith("dev") else "test"
        number = int(hashlib.sha256(self.query_id.encode("utf-8", "surrogatepass")).hexdigest(), 16)
        return "dev" if number % 10 < _DEV_TENTHS else "test"


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievalCorpus:
    """A library and the questions asked of it.

    Attributes:
        library: All tools. A library holds a name once, so further tools of a name carry marks
            behind it (``~``, ``^``) that no ranker takes for a word.
        names: The name that each tool of the library has in the file.
        keys: What each tool of the library counts as: its id, or its name in the file. Tools of
            one key are one tool, whichever of them is found.
        queries: The questions.
    """

    library: Library
    names: Mapping[str, str]
    keys: Mapping[str, str]
    queries: tuple[RetrievalQuery, ...]

    @property
    def unknown_gold(self) -> int:
        """How many gold tools of the questions are no tool of the files."""
        return sum(query.unknown_gold for query in self.queries)

    def of_split(self, split: Split) -> RetrievalCorpus:
        """Only the questions of a split; ``all`` keeps every one."""
        if split == "all":
            return self
        return replace(self, queries=tuple(one for one in self.queries if one.split == split))

    def sample(self, count: int) -> RetrievalCorpus:
        """At most ``count`` questions, taken evenly over the file; the same ones each time."""
        total = len(self.queries)
        if count >= total:
            return self
        return replace(
            self, queries=tuple(self.queries[at * total // count] for at in range(count))
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusFiles:
    """Where a corpus lies, and which part of it is asked.

    Attributes:
        tools: Files of tools; together they are one catalogue.
        queries: Files of questions.
        by: Whether tools of one name count as one.
        split: Which questions.
        max_queries: An even sample of this many questions; None asks all.
    """

    tools: tuple[str, ...]
    queries: tuple[str, ...]
    by: Identity = "id"
    split: Split = "all"
    max_queries: int | None = None

    def load(self) -> RetrievalCorpus:
        """Read it.

        Raises:
            DatasetError: The files hold something else, or no question of the split.
        """
        corpus = load_corpus(
            [Path(path) for path in self.tools], [Path(path) for path in self.queries], by=self.by
        )
        chosen = corpus.of_split(self.split)
        if not chosen.queries:
            raise DatasetError(
                f"none of the {len(corpus.queries)} questions is of the split {self.split!r}"
            )
        return chosen if self.max_queries is None else chosen.sample(self.max_queries)


def load_corpus(
    tools: Sequence[Path], queries: Sequence[Path], *, by: Identity = "id"
) -> RetrievalCorpus:
    """Read a corpus from JSON lines, plain or compressed (``.gz``).

    Args:
        tools: Files with one tool a line: ``name``, ``description``, ``parameters``; optional are
            ``id`` (else the name), ``returns`` or ``output`` (schema of the result), ``examples``,
            and all that ``definition_from_json`` reads. Several files are one catalogue.
        queries: Files with one question a line: ``query`` and ``gold`` or ``gold_tools`` (ids, or
            names); optional are ``id`` and ``category``. Questions without any gold are left out,
            as nothing can be found for them.
        by: Whether tools of the same name count as one.

    Raises:
        DatasetError: A file is missing, holds something else, or two tools share an id.
    """
    catalogue = _Catalogue()
    definitions = [one for path in tools for one in _each(path, catalogue.add)]
    names = catalogue.names
    keys = names if by == "name" else {name: key for key, name in catalogue.ids.items()}
    known = {name: keys[library_name] for library_name, name in reversed(names.items())}
    known |= {key: keys[name] for key, name in catalogue.ids.items()}
    found = [one for path in queries for one in _each(path, lambda record: _query(record, known))]
    asked = tuple(query for query in found if query is not None)
    if not definitions or not asked:
        raise DatasetError(
            f"there are {len(definitions)} tools in {_listed(tools)} and {len(asked)} questions "
            f"with gold tools in {_listed(queries)}; both are needed"
        )
    return RetrievalCorpus(library=Library(definitions), names=names, keys=keys, queries=asked)


def _each(path: Path, read: Callable[[JsonObject], T]) -> Iterator[T]:
    """What the records of a file are read as; one that is none ends the reading.

    Without it the catalogue would be another one, and recall over it another number.
    """
    for line in read_json_lines(path):
        try:
            yield read(line.read())
        except (DefinitionError, RecordError) as error:
            hint = "" if line.record else "; a compressed file has a name that ends in .gz"
            raise DatasetError(f"{path}:{line.number}: {error}{hint}") from error


@dataclass(kw_only=True, slots=True)
class _Catalogue:
    """The tools read so far, each under a name of its own in the library.

    Attributes:
        names: The name in the files, by that name.
        ids: That name by id; a tool without an id goes by it.
        times: How often a name stood in the files.
    """

    names: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)

    def add(self, record: JsonObject) -> ToolDefinition:
        """Take one tool more; it, as the library holds it.

        Raises:
            RecordError: Another one has its id.
        """
        definition = _definition(record)
        number = self.times[definition.name]
        unique = definition.name + (f"{number:b}".translate(_MARKS) if number else "")
        key = str(record.get("id") or unique)
        if key in self.ids:
            raise RecordError(f"two tools have the id {key!r}; give each an id of its own")
        self.ids[key], self.names[unique] = unique, definition.name
        self.times[definition.name] += 1
        return replace(definition, name=unique)


def _definition(given: JsonObject) -> ToolDefinition:
    record = dict(given)
    if "output" in record:
        record.setdefault("returns", record.pop("output"))
    definition = definition_from_json(record)
    examples = record.get("examples")
    if definition.examples or not isinstance(examples, list):
        return definition
    found = (_example(entry) for entry in examples if isinstance(entry, Mapping))
    return replace(definition, examples=tuple(found))


def _example(record: JsonObject) -> Example:
    """A worked call; an object without ``arguments`` is the arguments themselves."""
    arguments = record.get("arguments")
    if not isinstance(arguments, Mapping):
        return Example(arguments=record)
    query = record.get("query")
    text = query if isinstance(query, str) else ""
    return Example(arguments=arguments, result=record.get("result"), query=text)


def _query(record: JsonObject, known: Mapping[str, str]) -> RetrievalQuery | None:
    """The question; None when it names no gold."""
    text = record.get("query")
    if not isinstance(text, str):
        raise RecordError('a question needs "query" (text) and "gold" or "gold_tools" (a list)')
    gold = record.get("gold_tools") if record.get("gold") is None else record.get("gold")
    gold = [gold] if isinstance(gold, str) else gold
    if not isinstance(gold, list) or not all(isinstance(entry, str) for entry in gold):
        raise RecordError(
            '"gold" or "gold_tools" is a list of the ids or names of the right tools, '
            f"got {str(gold)[:80]}"
        )
    if not gold:
        return None
    found = [known[entry] for entry in gold if entry in known]
    return RetrievalQuery(
        query_id=str(record.get("id") or text),
        text=text,
        gold=frozenset(found),
        category=str(record.get("category") or record.get("cat") or ""),
        unknown_gold=len(gold) - len(found),
    )


def _listed(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths)) or "no files"
