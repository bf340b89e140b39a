"""What is measured of a method, in this process and in one of its own."""

from dataclasses import replace

import pytest

from agentkit.errors import DatasetError, UsageError
from agentkit.retrieval import Hit, Retrieval, card, estimate_tokens, schema_text
from agentkit_bench.retrieval import (
    CorpusFiles,
    Limits,
    Method,
    compare,
    find_method,
    measure_apart,
    measure_method,
)


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
    assert report.quality.recall == {1: 1 / 8, 5: 4 / 8, 10: 7 / 8, 32: 1.0}
    assert report.quality.full == {5: 4 / 8, 10: 7 / 8, 32: 1.0}
    ranks = [1, 2, 4, 5, 6, 7, 9, 11]
    assert report.quality.mrr == pytest.approx(sum(1 / rank for rank in ranks) / 8)
    assert report.quality.offered == 1 / 8
    assert report.quality.shown == 1.0
    assert report.quality.name_hit == 1 / 11
    lengths = [len(query.text) for query in sample.queries]
    assert report.cost.tokens == pytest.approx(sum(lengths) / 8)
    assert report.cost.tokens_max == max(lengths)


async def test_tokens_at_a_depth_are_those_of_the_first_tools(sample):
    """Of two definitions of one name the better one is counted, once."""
    report = await measure_method(IN_ORDER, sample)
    first = sample.library.definitions
    assert report.cost.schemas[5] == sum(estimate_tokens(schema_text(one)) for one in first[:5])
    kept = (*first[:6], *first[7:11])
    assert report.cost.cards[10] == sum(estimate_tokens(card(one) + "\n") for one in kept)


@pytest.mark.parametrize("name", ["default", "lexical"])
async def test_shared_words_find_the_tools_of_the_sample(sample, name):
    """The methods that need no model find nearly everything, within the budget."""
    report = await measure_method(find_method(name), sample, limits=Limits(token_budget=300))
    assert report.quality.recall[5] >= 0.85
    assert report.cost.tokens_max <= 300
    assert report.questions == 8


async def test_the_default_finds_every_tool_by_its_name(sample):
    """A query that is a tool's name gets that tool first."""
    report = await measure_method(find_method("default"), sample)
    assert report.quality.name_hit == 1.0


@pytest.mark.long
async def test_a_comparison_pairs_the_questions(sample):
    """Each question under one method is held against the same question under the other."""
    low, high = [
        await measure_method(method, sample) for method in (IN_ORDER, find_method("default"))
    ]
    found = compare(high, low).difference[1]
    assert found.value == pytest.approx(high.quality.recall[1] - low.quality.recall[1])
    assert found.low <= found.value <= found.high
    same = compare(low, low).difference[5]
    assert (same.low, same.value, same.high) == (0.0, 0.0, 0.0)


async def test_other_questions_are_not_compared(sample):
    """A comparison of different samples is refused."""
    whole = await measure_method(IN_ORDER, sample)
    part = await measure_method(IN_ORDER, sample.sample(3))
    with pytest.raises(ValueError, match="other questions"):
        compare(part, whole)


@pytest.mark.long
async def test_a_process_of_its_own_measures_the_same(sample, sample_files):
    """Quality and tokens do not depend on where they are measured; memory is that process's."""
    tools, queries = map(str, sample_files)
    files = CorpusFiles(tools=(tools,), queries=(queries,), by="name")
    apart = measure_apart("default", files)
    here = await measure_method(find_method("default"), sample)
    assert apart.quality == here.quality
    assert apart.cost.tokens == here.cost.tokens
    assert apart.cost.peak_mb > 0
    record = apart.to_json()
    wanted = "method recall@1 recall@5 recall@10 recall@32 full@10 tokens cpu_p50_ms cpu_p99_ms"
    assert {*wanted.split(), "memory_mb"} <= record.keys()


def test_what_went_wrong_in_the_process_is_told(sample_files, tmp_path):
    """Errors of the other process arrive as they are."""
    tools, queries = map(str, sample_files)
    with pytest.raises(UsageError, match="there are: default"):
        measure_apart("magic", CorpusFiles(tools=(tools,), queries=(queries,)))
    with pytest.raises(DatasetError, match="missing"):
        measure_apart(
            "default", CorpusFiles(tools=(str(tmp_path / "missing"),), queries=(queries,))
        )


def test_a_split_without_questions_is_refused(written, sample_files):
    """There is nothing to measure then."""
    tools, _ = sample_files
    queries = written("q", {"query": "low water", "gold": ["t01"], "category": "test"})
    files = CorpusFiles(tools=(str(tools),), queries=(str(queries),), split="dev")
    with pytest.raises(DatasetError, match="split 'dev'"):
        files.load()


async def test_fallbacks_are_counted_by_what_they_say(sample):
    """Notes of the stages that differ in numbers only are one, with how many questions met it."""

    class Noting(InOrder):
        async def retrieve(self, query, library):
            found = await super().retrieve(query, library)
            return replace(found, notes=("no planner", f"{len(query)} characters were cut"))

    method = Method(name="noting", summary="notes", build=lambda *_: Noting())
    report = await measure_method(method, sample)
    assert report.notes == {"N characters were cut": 8, "no planner": 8}
    assert report.to_json()["notes"] == report.notes
