"""NESTFUL: questions whose answer takes several calls, each using results of earlier ones.

The public package ``nestful-wrapper`` carries the questions, the tools and the gold calls of four
sources. A gold argument refers to an earlier result as ``$var1.coordinates.latitude$``; one
source, ComplexFuncBench, also recorded what each call returned, so that its calls can be replayed
(``agentkit_bench.RecordedWorld``). The package is under Apache-2.0, but the terms
of the sources are not in it: agentkit ships nothing of them, and only takes the data files out of
the package.

Differences to upstream: a reference into a list means its first item, as it does there, and is
written out (``[0]``); one to what no earlier result holds is kept as text that was made from that
result; the closing record ``var_result`` becomes ``Trajectory.answered``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentkit.errors import DatasetError
from agentkit.evaluation.expectations import GoldCall
from agentkit.evaluation.task_files import read_records
from agentkit.evolution.trajectories import (
    Flow,
    Given,
    Path as DataPath,
    Source,
    Step,
    Trajectory,
    at_path,
)
from agentkit.fetch import PackageFile, Progress, cache_directory, fetch_package_files
from agentkit.messages import JsonObject
from agentkit.reading import read_json
from agentkit.tools.definition import Effects, ToolDefinition
from agentkit.tools.sources.json_records import definition_from_json

RELEASE = "0.1.7"
"""The release of ``nestful-wrapper`` that the numbers in our documents were measured on."""

WHEEL_SHA256 = "7e7b34b0491d6fb26e9670d6fca93f39a7cc9475e25962d39633889a04e26fe4"

SOURCES: Mapping[str, str] = {
    "complexfuncbench": "complexfuncbench/complexfuncbench",
    "executable": "executable/executable",
    "glaive": "non-executable/non-executable-glaive",
    "sgd": "non-executable/non-executable-sgd",
}
"""The four sources, and how the files of each begin."""

READ_ONLY_SOURCES = frozenset({"complexfuncbench", "executable"})
"""Sources all of whose tools are HTTP GET requests; those of the others may change something."""

_REFERENCE = re.compile(r"\$(var\d+)\.?([^$]*)\$")
_PATH_STEP = re.compile(r"[^.\[\]]+")
_ANSWER = "var_result"
_CLIPPED = "_clipped_chars"


@dataclass(frozen=True, kw_only=True, slots=True)
class NestfulQuestion:
    """One question with its gold calls.

    Attributes:
        category: The source.
        trajectory: The gold calls. Where nothing was recorded, each result holds one made-up text
            at every place that a later call refers to, so that the flow of data can be replayed.
        is_recorded: Whether the results are recorded ones.
        calls: The gold calls as upstream writes them, references included. ``$var2...$`` is the
            second of them; where a question's labels differ from that, they are upstream's slips.
    """

    category: str
    trajectory: Trajectory
    is_recorded: bool
    calls: tuple[GoldCall, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Nestful:
    """The benchmark.

    Attributes:
        questions: In upstream's order.
        definitions: All tools.
        fields: What each tool returns, by its name: dotted paths of fields, outer ones first.
    """

    questions: tuple[NestfulQuestion, ...]
    definitions: tuple[ToolDefinition, ...]
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def fetch_nestful(cache_dir: Path | None = None, progress: Progress | None = None) -> Path:
    """Download the data files (203 MB unpacked), unless they are there already.

    Args:
        cache_dir: Where to keep them; None is agentkit's folder in the user's cache.
        progress: Told how many bytes have arrived.

    Returns:
        The folder to give to ``load_nestful``.

    Raises:
        FetchError: The download failed, or what arrived is not release ``RELEASE``.
    """
    names = [f"{stem}-{part}.json" for stem in SOURCES.values() for part in ("data", "spec")]
    return fetch_package_files(
        f"nestful-wrapper=={RELEASE}",
        sha256=WHEEL_SHA256,
        files=[PackageFile(path=f"data_v1/{name}", saved_as=name) for name in names],
        destination=(cache_dir or cache_directory()) / f"nestful-{RELEASE}",
        progress=progress,
    )


def load_nestful(folder: Path) -> Nestful:
    """Read the questions and the tools.

    Args:
        folder: Holds the files as upstream lays them out; sources whose files are absent are left
            out. Or it holds ``queries.jsonl.gz`` and ``tools.jsonl.gz``, the same records one a
            line, in which long responses may be clipped (``{"_clipped_chars", "_head"}``).

    Raises:
        DatasetError: A file is not what NESTFUL holds, or there are no questions.
        DefinitionError: A tool definition is not usable.
    """
    try:
        questions = tuple(_question(row) for row in _rows(folder))
        tools = tuple(_tools(folder))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DatasetError(
            f"{folder} holds a record that is not NESTFUL's ({type(error).__name__}: {error})"
        ) from error
    if not questions:
        raise DatasetError(
            f"{folder} holds no NESTFUL questions (complexfuncbench/complexfuncbench-data.json and "
            "the like); give the folder that fetch_nestful() returns"
        )
    return Nestful(
        questions=questions,
        definitions=tuple(definition for definition, _ in tools),
        fields={definition.name: fields for definition, fields in tools},
    )


# --- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    question_id: str
    category: str
    request: str
    calls: Sequence[JsonObject]


def _rows(folder: Path) -> Iterator[_Row]:
    if (folder / "queries.jsonl.gz").is_file():
        for record in read_records(folder / "queries.jsonl.gz"):
            yield _Row(
                question_id=record["id"],
                category=record["category"],
                request=record["query"],
                calls=record["gold"],
            )
        return
    for category, stem in SOURCES.items():
        for number, record in enumerate(_records(folder / f"{stem}-data.json")):
            yield _Row(
                question_id=f"nestful:{category}:{number}",
                category=category,
                request=record["input"],
                calls=record["output"],
            )


def _tools(folder: Path) -> Iterator[tuple[ToolDefinition, tuple[str, ...]]]:
    """Each tool with the fields of its result."""
    if (folder / "tools.jsonl.gz").is_file():
        for record in read_records(folder / "tools.jsonl.gz"):
            category = record["id"].partition(":")[2].partition("/")[0]
            yield _definition(record, category), tuple(_fields(record.get("returns") or {}))
        return
    for category, stem in SOURCES.items():
        for record in _records(folder / f"{stem}-spec.json"):
            parameters = _parameters(record.get("query_parameters", {}))
            definition = _definition({**record, "parameters": parameters}, category)
            yield definition, tuple(_fields(record.get("output_parameters") or {}))


def _fields(outer: Mapping[str, Any]) -> Iterator[str]:
    """Dotted paths of the fields of a result; those of a list are those of its items."""
    level = dict(outer)
    while level:
        yield from level
        level = {
            f"{path}.{name}": part
            for path, schema in level.items()
            for name, part in _properties(schema).items()
        }


def _properties(schema: Any) -> Mapping[str, Any]:
    if not isinstance(schema, Mapping):
        return {}
    properties: Any = schema.get("properties")
    if not properties and isinstance(schema.get("items"), Mapping):
        properties = schema["items"].get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _definition(record: JsonObject, category: str) -> ToolDefinition:
    effects = Effects.of(["reads"]) if category in READ_ONLY_SOURCES else Effects()
    made = definition_from_json(
        {key: record[key] for key in ("name", "description", "parameters")},
        reference=f"nestful-wrapper {RELEASE}, {category}",
    )
    return ToolDefinition.from_schema(
        made.name,
        made.description.summary,
        made.parameters_schema,
        effects=effects,
        tags=(category,),
        origin=made.origin,
    )


def _parameters(properties: Mapping[str, JsonObject]) -> dict[str, Any]:
    """Upstream's table of parameters as a JSON Schema: what is required is told once, in a list."""
    schemas = {name: _schema(schema) for name, schema in properties.items()}
    required = [name for name, schema in properties.items() if schema.get("required") is True]
    return {"type": "object", "properties": schemas, "required": required}


def _schema(table: JsonObject) -> dict[str, Any]:
    schema = {key: table[key] for key in ("type", "description", "items") if table.get(key)}
    values = table.get("enum") or table.get("allowed_values")
    if values:
        schema["enum"] = list(values)
    if table.get("default") is not None:
        schema["default"] = table["default"]
    return schema


def _records(path: Path) -> list[Any]:
    if not path.is_file():
        return []
    try:
        records = read_json(path.read_bytes())
    except ValueError as error:
        raise DatasetError(f"{path.name}: not JSON: {error}") from error
    if not isinstance(records, list):
        raise DatasetError(f"{path.name}: holds no list; this is not a file of NESTFUL")
    return records


# --- questions ------------------------------------------------------------------------------------


def _question(row: _Row) -> NestfulQuestion:
    calls = [call for call in row.calls if call["name"] != _ANSWER]
    labels = {call["label"]: at for at, call in enumerate(calls)}
    recorded = all("response" in call for call in calls)
    results = [call["response"] for call in calls] if recorded else _made_up(calls, labels)
    earlier: dict[str, int] = {}
    steps: list[Step] = []
    for call, result in zip(calls, results, strict=True):
        arguments = call["arguments"].items()
        sources = {name: _source(value, earlier, results) for name, value in arguments}
        is_whole = recorded and not _is_clipped(result)
        earlier[call["label"]] = len(steps)
        steps.append(Step(tool=call["name"], sources=sources, result=result, is_whole=is_whole))
    answers = [call["arguments"] for call in row.calls if call["name"] == _ANSWER]
    return NestfulQuestion(
        category=row.category,
        trajectory=Trajectory(
            trajectory_id=row.question_id,
            steps=tuple(steps),
            request=row.request.strip(),
            answered=frozenset(_mentioned(answers, labels)),
        ),
        is_recorded=recorded,
        calls=tuple(GoldCall(name=call["name"], arguments=call["arguments"]) for call in calls),
    )


def _source(value: Any, labels: Mapping[str, int], results: Sequence[Any]) -> Source:
    match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[1] not in labels:
        return Given(value=value, uses=tuple(sorted(_mentioned(value, labels))))
    step = labels[match[1]]
    path = _path(results[step], match[2])
    try:
        at_path(results[step], path)
    except LookupError:  # clipped, or not what the reference says
        return Given(value=value, uses=(step,))
    return Flow(step=step, path=path)


def _mentioned(value: Any, labels: Mapping[str, int]) -> set[int]:
    """Positions of the calls that a value refers to, at any place of it."""
    found = re.findall(r"\$(var\d+)", json.dumps(value))
    return {labels[label] for label in found if label in labels}


def _path(result: Any, written: str) -> DataPath:
    """The path that a reference means: a name, where there is a list, is one of its first item."""
    path: list[str | int] = []
    for step in _PATH_STEP.findall(written):
        here = _shape_at(result, tuple(path))
        if isinstance(here, list) and not step.isdigit():
            path.append(0)
        path.append(int(step) if step.isdigit() and not isinstance(here, dict) else step)
    return tuple(path)


def _shape_at(result: Any, path: DataPath) -> Any:
    if _is_clipped(result):
        return [] if not path and result["_head"].startswith("[") else None
    try:
        return at_path(result, path)
    except LookupError:
        return None


def _is_clipped(result: Any) -> bool:
    return isinstance(result, dict) and _CLIPPED in result


def _made_up(calls: Sequence[JsonObject], labels: Mapping[str, int]) -> list[Any]:
    """For calls without a recorded result: objects that hold what later calls refer to."""
    text = json.dumps([call["arguments"] for call in calls])
    made: list[Any] = [{} for _ in calls]
    for label, written in _REFERENCE.findall(text):
        if label not in labels:
            continue
        steps = [int(one) if one.isdigit() else one for one in _PATH_STEP.findall(written)]
        at = labels[label]
        made[at] = _with(made[at], steps, f"{label}.{written}" if written else label)
    return made


def _with(value: Any, path: Sequence[str | int], text: str) -> Any:
    """``value`` with ``text`` at ``path``; lists and objects on the way are made."""
    if not path:
        return value if isinstance(value, dict | list) and value else text
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        items = list(value) if isinstance(value, list) else []
        items += [{} for _ in range(step + 1 - len(items))]
        items[step] = _with(items[step], rest, text)
        return items
    known = dict(value) if isinstance(value, dict) else {}
    return {**known, step: _with(known.get(step, {}), rest, text)}
