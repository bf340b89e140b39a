"""The single-turn part of the Berkeley Function Calling Leaderboard (BFCL) v4.

The public package ``bfcl_eval`` (Apache-2.0) carries the questions, the gold answers and the tool
definitions as JSON lines. Only those files are taken out of it; its code is neither installed nor
run, and scoring is our own (``agentkit.metrics``).

Upstream, a tool's name is unique within one question only: 528 names stand for two to 62
different definitions. Here definitions of equal content are merged, the first of a name keeps it,
and each other one gets a counter (``requests.get__2``). Questions and gold calls point at the
exact definition that the question came with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from agentkit.errors import DatasetError
from agentkit.evaluation.expectations import (
    AllowedCalls,
    AnyCall,
    Expectation,
    NoCall,
    Record,
    RecordError,
    checked,
)
from agentkit.evaluation.task import Benchmark, LeftOut, Task
from agentkit.evaluation.task_files import read_json_lines, read_records
from agentkit.fetch import PackageFile, Progress, cache_directory, fetch_package_files
from agentkit.library.merging import distinct_name
from agentkit.messages import AssistantMessage, JsonObject, Message, SystemMessage, UserMessage
from agentkit.metrics import AllowedCall
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.sources.json_records import definition_from_json
from agentkit_bench.bfcl_values import JAVA, JAVASCRIPT

RELEASE = "2026.3.23"
"""The release of ``bfcl_eval`` that the numbers in our documents were measured on."""

WHEEL_SHA256 = "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a"

CATEGORIES: Mapping[str, Literal["calls", "any_call", "no_call"]] = {
    "simple_python": "calls",
    "simple_java": "calls",
    "simple_javascript": "calls",
    "multiple": "calls",
    "parallel": "calls",
    "parallel_multiple": "calls",
    "irrelevance": "no_call",
    "live_simple": "calls",
    "live_multiple": "calls",
    "live_parallel": "calls",
    "live_parallel_multiple": "calls",
    "live_irrelevance": "no_call",
    "live_relevance": "any_call",
}
"""The single-turn categories, and what each expects."""

FURTHER_TOOLS = (
    "gorilla_file_system",
    "math_api",
    "memory_kv",
    "memory_rec_sum",
    "memory_vector",
    "message_api",
    "posting_api",
    "ticket_api",
    "trading_bot",
    "travel_booking",
    "vehicle_control",
    "web_search",
)
"""Tools of the multi-turn categories: no question here needs them, and retrieval must not mind."""

_LANGUAGES = {"simple_java": JAVA, "simple_javascript": JAVASCRIPT}
_REFERENCE = f"bfcl_eval {RELEASE}"
_ANSWERS = "possible_answer"
_FURTHER = "multi_turn_func_doc"
_INSIDE = "bfcl_eval/data"


def fetch_bfcl(cache_dir: Path | None = None, progress: Progress | None = None) -> Path:
    """Download the questions, unless they are there already.

    Args:
        cache_dir: Where to keep them; None is agentkit's folder in the user's cache.
        progress: Told how many bytes have arrived.

    Returns:
        The folder to give to ``load_bfcl``.

    Raises:
        FetchError: The download failed, or what arrived is not release ``RELEASE``.
    """
    return fetch_package_files(
        f"bfcl_eval=={RELEASE}",
        sha256=WHEEL_SHA256,
        files=[PackageFile(path=f"{_INSIDE}/{name}", saved_as=name) for name in bfcl_files()],
        destination=(cache_dir or cache_directory()) / f"bfcl-{RELEASE}",
        progress=progress,
    )


def bfcl_files() -> Iterator[str]:
    """The files that are taken out of the package, relative to the folder they are kept in."""
    for category, expects in CATEGORIES.items():
        yield _question_file(category)
        if expects == "calls":
            yield f"{_ANSWERS}/{_question_file(category)}"
    for name in FURTHER_TOOLS:
        yield _further_file(name)


def load_bfcl(folder: Path) -> Benchmark:
    """Read the questions and build the catalogue.

    Args:
        folder: Holds the files as upstream lays them out. Categories and catalogues whose file is
            absent are left out, so a sample of the benchmark is a folder with fewer files.

    Raises:
        DatasetError: A file is not what BFCL v4 holds, or the folder has no questions.
        DefinitionError: A tool definition is not usable.
    """
    questions = {name: list(_rows(folder / _question_file(name), _Question)) for name in CATEGORIES}
    if not any(questions.values()):
        raise DatasetError(
            f"{folder} holds no BFCL questions ({_question_file('simple_python')} and the like); "
            "give the folder that fetch_bfcl() returns"
        )
    catalogues = filter(Path.is_file, (folder / _further_file(name) for name in FURTHER_TOOLS))
    further = [record for path in catalogues for record in read_records(path)]
    offered = [record for rows in questions.values() for row in rows for record in row.function]
    catalogue = _Catalogue(reserved=_names([*offered, *further]))
    tasks = tuple(
        task
        for category, rows in questions.items()
        for task in _tasks(category, rows, _answers(folder, category), catalogue)
    )
    for record in further:
        catalogue.name_of(record)
    definitions = tuple(catalogue.definitions)
    return Benchmark(name=f"BFCL v4 {RELEASE}", tasks=tasks, definitions=definitions)


@dataclass(frozen=True)
class _Said:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class _Question:
    """One line of a question file, as pydantic checks it."""

    id: str
    question: list[list[_Said]]
    function: list[dict[str, Any]]


@dataclass(frozen=True)
class _Answer:
    """One line of an answer file: accepted values by parameter, by tool, one entry a call."""

    id: str
    ground_truth: list[dict[str, dict[str, list[Any]]]]


class _Catalogue:
    """Collects definitions and gives each distinct one its name."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self.definitions: list[ToolDefinition] = []
        self._taken = set(reserved)
        self._by_source: dict[str, str] = {}
        self._by_digest: dict[str, str] = {}
        self._first_of: set[str] = set()

    def name_of(self, record: JsonObject) -> str:
        """The name of the definition that ``record`` describes; adds it when it is new."""
        source = json.dumps(record, sort_keys=True)
        known = self._by_source.get(source)
        if known is None:
            definition = definition_from_json(record, reference=_REFERENCE, licence="Apache-2.0")
            known = self._by_source[source] = self._add(definition)
        return known

    def _add(self, definition: ToolDefinition) -> str:
        known = self._by_digest.get(definition.digest)
        if known is not None:
            return known
        name = definition.name
        if name in self._first_of:
            name = distinct_name(definition.name, self._taken)
            origin = replace(definition.origin, original_name=definition.name)
            self._by_digest[definition.digest] = name  # the digest that equal content arrives with
            definition = replace(definition, name=name, origin=origin)
        self._first_of.add(name)
        self._taken.add(name)
        self._by_digest[definition.digest] = name
        self.definitions.append(definition)
        return name


def _tasks(
    category: str,
    rows: Iterable[_Question],
    answers: Mapping[str, _Answer],
    catalogue: _Catalogue,
) -> Iterator[Task]:
    for row in rows:
        names = {record["name"]: catalogue.name_of(record) for record in row.function}
        said = [_message(one) for turn in row.question for one in turn]
        if not said or not isinstance(said[-1], UserMessage):
            raise DatasetError(f"BFCL question {row.id!r} does not end with what the user says")
        yield Task(
            task_id=row.id,
            category=category,
            request=said[-1].text,
            history=tuple(said[:-1]),
            offered=tuple(names.values()),
            expects=(_expectation(category, row.id, answers, names),),
        )


def _expectation(
    category: str, task_id: str, answers: Mapping[str, _Answer], names: Mapping[str, str]
) -> Expectation:
    match CATEGORIES[category]:
        case "any_call":
            return AnyCall()
        case "no_call":
            return NoCall()
        case "calls":
            return AllowedCalls(
                calls=_gold(task_id, answers, names), language=_LANGUAGES.get(category)
            )


def _gold(
    task_id: str, answers: Mapping[str, _Answer], names: Mapping[str, str]
) -> tuple[AllowedCall, ...]:
    try:
        return tuple(
            AllowedCall(name=names[tool], allowed=allowed)
            for call in answers[task_id].ground_truth
            for tool, allowed in call.items()
        )
    except KeyError as error:
        raise DatasetError(
            f"BFCL question {task_id!r} has no gold answer, or one that calls a tool which the "
            f"question does not offer: {error}"
        ) from error


def _message(said: _Said) -> Message:
    match said.role:
        case "system":
            return SystemMessage(text=said.content)
        case "user":
            return UserMessage(text=said.content)
        case "assistant":
            return AssistantMessage(text=said.content)


def _answers(folder: Path, category: str) -> dict[str, _Answer]:
    path = folder / _ANSWERS / _question_file(category)
    return {row.id: row for row in _rows(path, _Answer)}


def _rows(path: Path, kind: type[Record]) -> Iterator[Record]:
    for row in read_rows(path, kind):
        if isinstance(row, LeftOut):
            raise DatasetError(f"{row}; this is not a file of BFCL v4, or it was cut short")
        yield row


def read_rows(path: Path, kind: type[Record]) -> Iterator[Record | LeftOut]:
    """The lines of a file as records of a kind, and why others are none; none of an absent file."""
    for line in read_json_lines(path) if path.is_file() else ():
        try:
            yield checked(kind, line.read())
        except RecordError as error:
            yield LeftOut(where=f"{path.name}, line {line.number}", reason=str(error))


def _names(records: Iterable[JsonObject]) -> set[str]:
    return {str(record.get("name", "")) for record in records}


def _question_file(category: str) -> str:
    return f"BFCL_v4_{category}.json"


def _further_file(name: str) -> str:
    return f"{_FURTHER}/{name}.json"
