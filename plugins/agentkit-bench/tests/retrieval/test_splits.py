"""Which questions are for tuning and which for the final figures."""

from hypothesis import given, strategies as st

from agentkit_bench.retrieval import RetrievalQuery


def question(query_id="q", category=""):
    """A question of which only the id and the category matter."""
    return RetrievalQuery(query_id=query_id, text="?", gold=frozenset({"a"}), category=category)


def test_a_category_that_names_its_split_decides():
    """Corpora that come with a split keep it."""
    assert question(category="dev/easy").split == "dev"
    assert question(category="test_in_domain/easy").split == "test"


def test_other_questions_are_split_by_their_id():
    """The digest of an id is the same on every machine; those of these end in 0 and 8."""
    assert question("bfcl:simple_python_0").split == "dev"
    assert question("bfcl:simple_python_1").split == "test"


def test_three_tenths_are_dev():
    """The share of dev questions is near 0.3."""
    splits = [question(f"q{number}").split for number in range(2000)]
    assert 0.27 < splits.count("dev") / 2000 < 0.33


def test_the_splits_share_no_question(sample):
    """Dev and test together are all questions, each once."""
    dev, test = sample.of_split("dev"), sample.of_split("test")
    assert set(dev.queries) | set(test.queries) == set(sample.queries)
    assert not set(dev.queries) & set(test.queries)
    assert sample.of_split("all") is sample


@given(st.text())
def test_any_id_has_a_split(query_id):
    """Whatever stands in a file."""
    assert question(query_id).split in {"dev", "test"}


def test_a_sample_is_even_and_the_same_each_time(sample):
    """Every part of the file is in a sample, and no question twice."""
    four = sample.sample(4)
    assert [query.query_id for query in four.queries] == ["q01", "q03", "q05", "q07"]
    assert sample.sample(100) is sample
