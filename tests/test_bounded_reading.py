"""What others wrote is read within bounds, and patterns run in linear time."""

from __future__ import annotations

import ast
import gzip
import hashlib
import importlib
import io
import json
import os
import pkgutil
import re
import signal
import sqlite3
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from re import _constants as codes, _parser as parser
from typing import Any

import pytest
from click.testing import CliRunner

import agentkit
from agentkit import Episode, ToolDefinition, open_store
from agentkit.cli.loading import read_content
from agentkit.cli.main import main
from agentkit.episodes.files import encode_episode, import_episodes
from agentkit.errors import (
    AgentKitError,
    ArtifactError,
    DatasetError,
    EpisodeFormatError,
    ReadingLimitError,
    StoreFormatError,
    UsageError,
)
from agentkit.evaluation.doctor import Catalogue, examine
from agentkit.evaluation.task_files import load_tasks, read_json_lines
from agentkit.evolution.validation.texts import sections
from agentkit.interop import openapi
from agentkit.interop.export.file import parse_artifact, read_artifact
from agentkit.reading import expanded_limit, read_json, unpacked
from agentkit.retrieval import TrainedVectors
from agentkit.server import Keys
from agentkit.tools.sources.json_records import DefinitionBatch, definitions_from_json

PACKAGE = Path(agentkit.__file__).parent

BOMB = b"[" + b"[]," * 6_000_000 + b"[]]"
"""18 MB of JSON, 18 kB of gzip, 450 MB of lists."""

MUCH = 60_000_000
"""Bytes that no hostile input of these tests may take."""


@pytest.fixture(scope="module")
def bomb():
    """The compressed bomb."""
    return gzip.compress(BOMB)


@contextmanager
def little_memory(most: int = MUCH) -> Iterator[None]:
    """Fail where the block takes more than ``most`` bytes at any moment."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most, f"{peak:,} bytes"


def test_an_artifact_does_not_grow_in_memory(bomb):
    """18 kB that stand for 450 MB are refused with the numbers and the way to raise them."""
    assert len(bomb) < 20_000
    with little_memory(), pytest.raises(ArtifactError, match="AGENTKIT_READ_LIMIT=10"):
        parse_artifact(bomb)


def test_a_tiny_artifact_takes_little():
    """What is set aside for unpacking is what there is to unpack, not what there might be."""
    data = gzip.compress(b'{"agentkit_artifact": 1}')
    assert len(data) < 100
    with little_memory(5_000_000), pytest.raises(ArtifactError):
        parse_artifact(data)


def test_commands_refuse_a_compressed_bomb(bomb, tmp_path):
    """Files of tools, of tasks and of whatever import is given are bounded alike."""
    bombs = [tmp_path / "tools.json.gz", tmp_path / "tasks.jsonl.gz"]
    for path in bombs:
        path.write_bytes(bomb)
    store = ["--store", f"sqlite:///{tmp_path / 'a.db'}"]
    told = {
        ("tools", "import", "--yes", str(bombs[0])): "AGENTKIT_READ_LIMIT",
        ("import", str(bombs[1])): "is neither an artifact nor a file of episodes",  # by its head
    }
    for command, words in told.items():
        with little_memory():
            result = CliRunner().invoke(main, [*command, *store])
        assert result.exit_code == 2, result.output
        assert words in result.stderr
    with little_memory(), pytest.raises(AgentKitError, match="AGENTKIT_READ_LIMIT"):
        load_tasks(bombs[1])


class Endless(io.RawIOBase):
    """A stream of spaces, as ``cat /dev/zero | tr`` gives them."""

    def readable(self) -> bool:
        """Yes, for ever."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill all of it."""
        buffer[:] = b" " * len(buffer)
        return len(buffer)


@pytest.mark.parametrize("command", [["tools", "import", "--yes", "-"], ["run", "-"]])
def test_a_stream_without_an_end_is_read_to_a_bound(command, monkeypatch):
    """A command that reads what never ends says so in one line."""
    stream = io.BufferedReader(Endless())
    monkeypatch.setattr("click.open_file", lambda *_: stream)
    result = CliRunner().invoke(main, [*command, "--store", "memory:"])
    assert result.exit_code == 2
    assert "more than 67,108,864 bytes" in result.stderr
    assert "AGENTKIT_READ_LIMIT" in result.stderr


READERS: dict[str, Callable[[Path], object]] = {
    "a catalogue": lambda path: read_content(str(path)),
    "episodes": lambda path: list(import_episodes(path)),
    "tasks": load_tasks,
    "an artifact": read_artifact,
    "an API description": openapi.read_document,
    "word vectors": TrainedVectors.read,
    "keys": Keys.from_file,
}


@pytest.mark.skipif(os.name != "posix", reason="pipes are POSIX")
@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_plain_file_is_not_read(reader, kind, tmp_path):
    """A pipe in which nobody writes, and a device without an end, are refused at once."""
    path = tmp_path / "given.json"
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    with pytest.raises((AgentKitError, OSError), match=r"not a plain file|cannot be read"):
        READERS[reader](path)


def vectors(header: object = None, *, scale: float = 1.0, **metadata: str) -> bytes:
    """A file of trained word vectors of one row."""
    numpy = pytest.importorskip("numpy")
    arrays = {
        "pieces": numpy.array([1], "<i4"),
        "scales": numpy.array([scale], "<f4"),
        "rows": numpy.ones((1, 4), "i1"),
    }
    body, entries = b"", {}
    for (name, array), kind in zip(arrays.items(), ("I32", "F32", "I8"), strict=True):
        offsets = [len(body), len(body) + array.nbytes]
        entries[name] = {"dtype": kind, "shape": array.shape, "data_offsets": offsets}
        body += array.tobytes()
    told = {
        "format": "agentkit.vectors/1",
        "meaning": "0.5",
        "base": "b",
        "digest": hashlib.sha256(body).hexdigest(),
        "provenance": "{}",
        "figures": "{}",
        **metadata,
    }
    made = {**entries, "__metadata__": told} if header is None else header
    text = made if isinstance(made, bytes) else json.dumps(made).encode()
    return len(text).to_bytes(8, "little") + text + body


@pytest.mark.parametrize(
    "content",
    [
        {"scale": 3e38},
        {"scale": float("nan")},
        {"provenance": "[]"},
        {"figures": "null"},
        {"figures": "[" * 100_000},
        {"header": b"[" * 900_000},
        {"header": {"__metadata__": "x"}},
        {"header": {"__metadata__": {"format": "agentkit.vectors/1"}, "pieces": 1}},
    ],
)
def test_damaged_word_vectors_are_refused(content, tmp_path):
    """Numbers that overflow, and a header that is odd or deep, are one clear error."""
    path = tmp_path / "it.vectors"
    path.write_bytes(vectors())
    assert TrainedVectors.read(path).meaning == 0.5
    path.write_bytes(vectors(**content))
    with pytest.raises(UsageError, match="cannot be read as trained word vectors"):
        TrainedVectors.read(path)


def test_a_deep_event_is_damage_of_its_store(tmp_path):
    """Whoever may write the database breaks no reader by a hundred thousand brackets."""
    store = open_store(f"sqlite:///{tmp_path / 'it.db'}")
    with sqlite3.connect(tmp_path / "it.db") as database:
        database.execute("INSERT INTO library_events VALUES (1, ?)", ("[" * 100_000,))
    with pytest.raises(StoreFormatError, match="an event that cannot be read"):
        store.events()
    store.close()


def test_a_line_of_episodes_is_bounded(tmp_path):
    """Compressed episodes are read a line at a time, and a line has a bound of its own."""
    path = tmp_path / "episodes.jsonl.gz"
    good = encode_episode(Episode(episode_id="e1", request="Hi")).encode()
    path.write_bytes(gzip.compress(good + b"\n" + b" " * 20_000_000 + b"\n"))
    found, broken = [], []
    with little_memory():
        found = list(import_episodes(path, on_broken=broken.append))
    assert [one.episode_id for one in found] == ["e1"]
    assert "a line of more than" in broken[0].reason


@pytest.mark.parametrize(
    "content",
    [
        b"{}\n" * 1_000_000,
        (b'{"name":"t","x":[' + b"[]," * 99_999 + b"[]]}\n") * 20,
        b"{}\n" * 300_000,
        b"xy\n" * 2_000_000,
    ],
    ids=["objects", "long lines", "no more values than allowed", "no JSON"],
)
@pytest.mark.parametrize(
    "reader",
    [
        ["tools", "import", "--yes", "--store", "memory:"],
        ["tools", "doctor"],
        ["import", "--store", "memory:"],
        ["eval", "--model", "scripted:x"],
    ],
    ids=["tools", "doctor", "episodes", "tasks"],
)
def test_json_lines_are_bounded_as_a_whole(content, reader, tmp_path):
    """Millions of tiny or broken lines are given up early, with a reason."""
    path = tmp_path / "lines.jsonl.gz"
    path.write_bytes(gzip.compress(content))
    with little_memory():
        result = CliRunner().invoke(main, [*reader, str(path)])
    told = r"values, more than|given up|entry 1 is unusable|no.* a file of episodes"
    assert re.search(told, result.stderr), result.output


def test_names_that_are_given_twice_take_no_search_each(tmp_path):
    """An object of very many names given twice is refused as soon as it is read."""
    names = ",".join(f'"{number}": 0' for number in range(120_000))
    path = tmp_path / "lines.jsonl"
    path.write_text(f"{{{names},{names}}}")
    (line,) = read_json_lines(path)
    assert line.reason == "not JSON: '0' is given twice in one object"
    with pytest.raises(ArtifactError, match="'119999' is given twice in one object"):
        parse_artifact(f'{{{names},"119999": 0}}'.encode())


def test_many_lines_some_of_them_broken_are_read(tmp_path):
    """Large catalogues and files with thousands of broken lines are honest."""
    lines = [json.dumps({"name": f"t{n}"}) for n in range(11_000)] + ["{}", "{"] * 4_999
    read = definitions_from_json("\n".join([*lines, '{"name": "last\u2028"}']))
    assert (len(read.definitions), len(read.rejected)) == (11_001, 9_998)
    good = encode_episode(Episode(episode_id="e1", request="Hi"))
    path, broken = tmp_path / "episodes.jsonl", []
    path.write_text("{}\n" * 10_000 + good + "\n{}\n" + good, encoding="utf-8")
    assert len(list(import_episodes(path, on_broken=broken.append))) == 1
    assert len(broken) == 10_001
    assert "no more of it is read" in broken[-1].reason
    path.write_text("1\n" * 10_001, encoding="utf-8")
    with pytest.raises(DatasetError, match="given up"):
        list(read_json_lines(path))


def test_a_catalogue_of_one_name_takes_little_to_examine():
    """Thousands of tools that are the same are one group, held once."""
    catalogue = Catalogue.of([ToolDefinition(name="t")] * 1_500)
    with little_memory(30_000_000):
        found = examine(catalogue)
    assert {len(one.tools) for one in found.findings if one.kind.code == "duplicate"} == {1_500}


def test_rows_of_parquet_are_bounded(tmp_path):
    """A text that a dictionary repeats a hundred thousand times ends with an error."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "episodes.parquet"
    text = encode_episode(Episode(episode_id="e1", request="x" * 100_000))
    indices = arrow.array([0] * 100_000, arrow.int32())
    column = arrow.DictionaryArray.from_arrays(indices, arrow.array([text]))
    parquet.write_table(arrow.table({"record": column}), path, compression="zstd")
    assert path.stat().st_size < 10_000
    with little_memory(), pytest.raises(EpisodeFormatError, match="AGENTKIT_READ_LIMIT"):
        sum(1 for _ in import_episodes(path))


def _yaml_bomb() -> str:
    layers = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(["openapi: 3.1.0", "l0: &l0 [a]", *layers])


@pytest.mark.parametrize(
    "text",
    [
        _yaml_bomb(),
        "openapi: 3.1.0\nx: [" + "a," * 100_000 + "a]",
        "openapi: 3.1.0\nx: " + "[" * 100_000,
        '{"openapi": "3.1.0", "x": [' + "[]," * 2_000_000 + "[]]}",
        '{"openapi": "3.1.0", "x": ' + "[" * 400 + "]" * 400 + "}",
    ],
    ids=["aliases", "many YAML values", "deep YAML", "many JSON values", "deep JSON"],
)
def test_api_descriptions_are_bounded(text):
    """Anchors that multiply, millions of values and thousands of levels are refused early."""
    with little_memory(), pytest.raises(AgentKitError, match=r"values|nest|another part"):
        openapi.read_document(text)


@pytest.mark.parametrize("read", [read_json, definitions_from_json], ids=["json", "catalogue"])
@pytest.mark.parametrize(
    "text",
    [
        "[" + "[]," * 2_000_000 + "[]]",
        '"\n' + "{}\n" * 1_000_000,
        "[" * 100_000,
        '[{"a":' * 300 + "1" + "}]" * 300,
    ],
    ids=["many values", "many lines behind an open text", "only openings", "deep"],
)
def test_json_is_bounded_before_it_is_built(read, text):
    """Too many values and too many levels are errors; a catalogue tells them as its problems."""
    with little_memory():
        try:
            found = read(text)
        except ReadingLimitError:
            return
    assert isinstance(found, DefinitionBatch)
    assert "AGENTKIT_READ_LIMIT" in found.rejected[0].reason or "nested" in found.rejected[0].reason


def test_texts_do_not_count_as_values():
    """A document may hold as many commas and brackets as it likes inside its texts."""
    text = json.dumps({"text": '[{,"' * 1_000_000})
    assert read_json(text)["text"].startswith("[{,")


def test_a_project_file_may_not_break_the_parser(tmp_path, monkeypatch):
    """Nesting that tomllib cannot follow is told as a mistake in the file."""
    (tmp_path / "agentkit.toml").write_text("tools = " + "[" * 5_000 + "]" * 5_000)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["tools", "list"])
    assert result.exit_code == 2, result.output
    assert "agentkit.toml" in result.stderr


def test_the_environment_raises_the_bounds(monkeypatch):
    """A large file that its owner made can still be read."""
    data = gzip.compress(b" " * 20_000_000)
    with pytest.raises(ReadingLimitError):
        unpacked(data)
    monkeypatch.setenv("AGENTKIT_READ_LIMIT", "10")
    assert len(unpacked(data)) == 20_000_000
    assert expanded_limit(1) == 160 * 1024 * 1024
    monkeypatch.setenv("AGENTKIT_READ_LIMIT", "lots")
    with pytest.raises(AgentKitError, match="whole number"):
        unpacked(data)


LENGTH = 24_000
"""Characters: a quadratic match takes some three hundred million steps, a linear one few."""

WINDOW = 8_000
"""Characters that the checks on texts read at a time; their patterns are long."""

SECONDS = 2.0
LEAST = 0.005
"""Seconds for a quarter of LENGTH that are looked at further; a window may take some more."""
LETTERS = "a1 A-_.,\"'/\t\n:=@[`|({<#*+%&$~^;!?\ré中"

BOUNDED = {
    "agentkit.evolution.validation.lexical_checks._FICTITIOUS": "what a telephone number matched",
    "agentkit.tools.patterns._EMAIL": "fullmatch, through _looks_like",
    "agentkit.tools.patterns._URI": "fullmatch, through _looks_like",
    "agentkit.tools.sources.dialects._ARRAY_OF": "a type's name of 200 characters",
    "agentkit.library.opening": "the URL of a store",
}
"""Patterns that take quadratic time somewhere, and why no long text comes to them there."""

AT_A_PLACE = {
    *("statements[joiner]", "statements[end]", "statements[in a unit]"),
    "forms[reserved address]",
}
"""Sections of phrases that are matched at one place of a text."""


def patterns() -> dict[tuple[str, int], str]:
    """Every compiled pattern that a module of the package holds, with where it was found."""
    found: dict[tuple[str, int], str] = {}

    def look(value: Any, where: str, depth: int) -> None:
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
            found.setdefault((value.pattern, value.flags), where)
        elif depth and isinstance(value, list | tuple | set | frozenset):
            for item in value:
                look(item, where, depth - 1)
        elif depth and isinstance(value, Mapping):
            look([*value.keys(), *value.values()], where, depth)
        elif depth and hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
            look([getattr(value, name, None) for name in value.__dataclass_fields__], where, depth)

    for module in pkgutil.walk_packages(agentkit.__path__, "agentkit."):
        try:
            names = vars(importlib.import_module(module.name))
        except ImportError:  # an optional dependency
            continue
        for name, value in [*names.items()]:
            look(value, f"{module.name}.{name}", 3)
    return found


def sample(tree: Any, pick: int) -> str:
    """A text that a parsed pattern matches, more or less; ``pick`` chooses among several."""
    text = ""
    for code, rule in tree:
        if code is codes.LITERAL:
            text += chr(rule)
        elif code is codes.ANY:
            text += "a"
        elif code is codes.NOT_LITERAL:
            text += "b" if rule == ord("a") else "a"
        elif code is codes.IN:
            fitting = [one for one in LETTERS if re.match(_class(rule), one)]
            fitting += [chr(item) for op, item in rule if op is codes.LITERAL]
            text += fitting[pick % len(fitting)] if fitting else "a"
        elif code is codes.BRANCH:
            text += sample(rule[1][pick % len(rule[1])], pick)
        elif code is codes.SUBPATTERN:
            text += sample(rule[3], pick)
        elif code is codes.ATOMIC_GROUP:
            text += sample(rule, pick)
        elif code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
            least, most, repeated = rule
            text += sample(repeated, pick) * min(max(1, least) + (pick % 2), most, 20)
    return text


def _class(items: Any) -> str:
    """A set of characters as a pattern again."""
    names = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}
    inside = ""
    for code, item in items:
        if code is codes.LITERAL:
            inside += re.escape(chr(item))
        elif code is codes.RANGE:
            inside += f"{re.escape(chr(item[0]))}-{re.escape(chr(item[1]))}"
        elif code is codes.CATEGORY:
            name = str(item).rpartition("_")[2]
            inside += "\\" + (names[name].upper() if "_NOT_" in str(item) else names[name])
    return f"[{'^' if items[0][0] is codes.NEGATE else ''}{inside}]"


def repeated(tree: Any) -> set[str]:
    """Texts that a repetition repeats."""
    anything = any(code in {codes.ANY, codes.NOT_LITERAL} for code, _ in tree)
    ones = {sample(tree, pick) for pick in range(len(LETTERS))} | set(LETTERS * anything)
    few = sorted(ones)[:5]
    return ones | {one + other for one in few for other in few}


def pumps(tree: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """What each open-ended repetition repeats, with a text that leads up to it."""
    for code, rule in tree:
        if code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
            if rule[1] > 600:
                yield from ((before, one) for one in sorted(repeated(rule[2])))
            yield from pumps(rule[2], before)
        elif code is codes.SUBPATTERN:
            yield from pumps(rule[3], before)
        elif code is codes.ATOMIC_GROUP:
            yield from pumps(rule, before)
        elif code is codes.BRANCH:
            for branch in rule[1]:
                yield from pumps(branch, before)
        before += sample([(code, rule)], 0)


SOURCES = {
    path.relative_to(PACKAGE.parent).with_suffix("").as_posix().replace("/", "."): path.read_text()
    for path in PACKAGE.rglob("*.py")
}


def methods(where: str) -> set[str]:
    """How the code uses a pattern: from the start of a text alone, or ``search``."""
    module, _, name = where.rpartition(".")
    own = (SOURCES.get(module) or SOURCES[f"{module}.__init__"],)
    texts = "\n".join(own if name.startswith("_") else SOURCES.values())
    used = re.findall(rf"\b{re.escape(name)}\.(search|match|fullmatch|[sf]\w+)\(", texts)
    return {one if one in {"match", "fullmatch"} else "search" for one in used} or {"search"}


def inline() -> Iterator[tuple[str, int, str, str]]:
    """Patterns that are written where they are used, as ``re.search(r"...", text)``."""
    for module, source in SOURCES.items():
        for call in ast.walk(ast.parse(source)):
            match call:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="re"), attr=way),
                    args=[ast.Constant(value=str(pattern)), *_],
                ) if way != "compile":
                    yield pattern, 0, module, way if "match" in way else "search"


def phrases() -> Iterator[tuple[str, int, str, str]]:
    """Those of the checks on texts, which stand in files of their own."""
    for file in PACKAGE.glob("evolution/validation/phrases/*.txt"):
        for section, lines in sections(file.stem).items():
            where = f"{file.stem}[{section}]"
            method = "match" if where in AT_A_PLACE else "search"
            yield from ((line, 0, where, method) for line in lines)


class TooLongError(Exception):
    """A match took more than SECONDS."""


def seconds(match: Callable[[str], object], text: str) -> float:
    """How long a match takes, of the process's own time, up to SECONDS."""
    started = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        match(text)
    except TooLongError:
        return SECONDS
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - started


def slowest(compiled: re.Pattern[str], tree: Any, method: str, length: int, least: float) -> str:
    """A text on which a pattern is quadratic; empty where none is found."""
    match = getattr(compiled, method)
    texts = {
        start + (pump * length)[:length] + end
        for before, one in pumps(tree)
        for start in ("", before)
        for pump in filter(None, (one, before + one))
        for end in ("", "\0", "a")
    }
    for text in texts:
        quarter = seconds(match, text[: length // 4])  # most are through in no time
        if quarter > least and seconds(match, text) > min(8 * quarter, 0.9 * SECONDS):
            return text
    return ""


def used() -> Iterator[tuple[str, int, str, str]]:
    """The patterns of modules, as each is used."""
    for (pattern, flags), where in patterns().items():
        yield from ((pattern, flags, where, way) for way in methods(where))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("find", "length", "least"),
    [(used, LENGTH, LEAST), (inline, LENGTH, LEAST), (phrases, WINDOW, 4 * LEAST)],
)
def test_no_pattern_is_quadratic(find, length, least):
    """Pumped with what it repeats, with and without what leads there, each pattern ends in time.

    As the code uses it: ``match`` begins at one place, ``search`` at all of them.
    """

    def stop(*_: object) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGVTALRM, stop)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slow = [
            f"{where}.{method}: {pattern[:60]!r} on {text[:20]!r}…"
            for pattern, flags, where, method in find()
            if where not in BOUNDED
            for tree in [parser.parse(pattern, flags)]
            if (text := slowest(re.compile(pattern, flags), tree, method, length, least))
        ]
    signal.signal(signal.SIGVTALRM, before)
    assert not slow, "\n".join(slow)
