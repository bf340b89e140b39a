"""Methods, measured and compared."""

from __future__ import annotations

import json
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from agentkit.retrieval import Hit, Retrieval
from agentkit_bench.retrieval import (
    METHODS,
    CorpusFiles,
    Equipment,
    Method,
    compare,
    find_method,
    measure_apart,
    measure_method,
)


@pytest.fixture
def measured(project_root, sample_files, tmp_path):
    """The rows and the picture for libraries of 6 and of 11 tools."""
    script = project_root / "tests" / "benchmarks" / "context" / "context_cost.py"
    tools, queries = map(str, sample_files)
    command = [sys.executable, str(script), "--tools", tools, "--queries", queries]
    command += ["--sizes", "6", "11", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "context.json").read_text())["rows"]
    return rows, (tmp_path / "context.svg").read_text()


def test_every_method_is_measured_at_every_size_and_drawn(measured):
    """A model that reads the whole library sees all gold tools; others pay for what they read."""
    rows, picture = measured
    by_place = {(row["method"], row["tools"]): row for row in rows}
    methods = {"flat library", "paper", "paper, right types", "default"}
    assert {(method, size) for method in methods for size in (6, 11)} <= by_place.keys()
    assert by_place["flat library", 11]["shown_recall"] == 1.0
    assert by_place["flat library", 11]["tokens"] > by_place["flat library", 6]["tokens"]
    assert by_place["paper", 11]["tokens"] > by_place["paper", 11]["shown"]
    assert by_place["default", 11]["tokens"] == by_place["default", 11]["shown"] <= 1600
    shown = [text.text for text in ET.fromstring(picture).iter() if text.text]
    assert methods <= set(shown)


class InOrder:
    """Ranks tools in the order of the library, and offers the first."""

    async def retrieve(self, query, library):
        """The same whatever is asked."""
        hits = tuple(
            Hit(definition=definition, score=1.0 / rank)
            for rank, definition in enumerate(library.definitions, start=1)
        )
        return Retrieval(
            query=query, hits=hits, offered=library.definitions[:1], cards="", tokens=len(query)
        )


IN_ORDER = Method(name="in order", summary="no ranking", build=lambda *_: InOrder())


@pytest.mark.long
async def test_figures_of_a_fixed_ranking_by_hand(sample):
    """Ranked as in the file, the eight questions give figures that can be counted."""
    report = await measure_method(IN_ORDER, sample)
    # Ranks of the gold tools once both get_weather are one:
    # q01 1; q02 2, 3; q03 4; q04 5; q05 6; q06 7, 8; q07 9; q08 11.
    ranks = [1, 2, 4, 5, 6, 7, 9, 11]
    lengths = [len(query.text) for query in sample.queries]
    expected = {"recall@1": 1 / 8, "recall@5": 4 / 8, "recall@10": 7 / 8, "recall@32": 1.0}
    expected |= {"full@5": 4 / 8, "full@10": 7 / 8, "full@32": 1.0, "name_hit@1": 1 / 11}
    expected |= {"offered_recall": 1 / 8, "shown_recall": 1.0, "tokens_max": max(lengths)}
    expected |= {"mrr": sum(1 / rank for rank in ranks) / 8, "tokens": sum(lengths) / 8}
    assert {name: report.figures[name] for name in expected} == pytest.approx(expected)


async def test_a_comparison_pairs_the_questions(sample):
    """Each question under one method is held against the same question under the other."""
    low, high = [
        await measure_method(method, sample) for method in (IN_ORDER, find_method("lexical"))
    ]
    assert high.figures["recall@5"] >= 0.85
    assert high.figures["tokens_max"] <= 1600
    found = compare(high, low)[1]
    assert found.value == pytest.approx(high.figures["recall@1"] - low.figures["recall@1"])
    assert found.low <= found.value <= found.high
    same = compare(low, low)[5]
    assert (same.low, same.value, same.high) == (0.0, 0.0, 0.0)


@pytest.mark.long
async def test_a_process_of_its_own_measures_the_same(sample, sample_files):
    """Quality and tokens do not depend on where they are measured; memory is that process's."""
    tools, queries = map(str, sample_files)
    files = CorpusFiles(tools=(tools,), queries=(queries,), by="name")
    apart = measure_apart("default", files)
    here = await measure_method(find_method("default"), sample)
    measured = {"build_cpu_s", "memory_mb", "cpu_p50_ms", "cpu_p99_ms"}
    for name in here.figures.keys() - measured:
        assert apart.figures[name] == here.figures[name]
    assert measured <= apart.to_json().keys()


MODELS = '''
"""Stand-ins for models."""

from agentkit.testing import FunctionModel

WORDS = ("harbour", "ferry", "stamp", "euros", "weather", "hotel", "translate", "circle")

def embed(texts):
    """One number a word: whether the text holds it."""
    return [[1.0 + 9 * (word in text.lower()) for word in WORDS] for text in texts]

class Model:
    """As sentence-transformers has it."""

    def encode(self, texts):
        """Vectors of texts."""
        return embed(texts)

model = FunctionModel(lambda request: "[1, 2, 3]")
number = 3
'''


@pytest.fixture
def models(tmp_path, monkeypatch):
    """A module with models in the working directory; gives its name."""
    name = f"models_of_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    return name


@pytest.mark.long
@pytest.mark.parametrize("method", sorted(set(METHODS) - {"vectors", "half_and_half"}))
async def test_every_method_answers(sample, models, method):
    """With an embedding model and a language model all methods can be measured."""
    equipment = Equipment(embedder_name=f"{models}:embed", model_name=f"{models}:model")
    assert not find_method(method).missing(equipment)
    report = await measure_method(find_method(method), sample, equipment=equipment)
    assert report.method == method
    assert 0 < report.figures["shown_recall"] <= 1
    assert report.figures["tokens"] > 0
    asks = method in {"paper", "planned"}
    assert (report.figures["model_requests"] > 0) == asks
