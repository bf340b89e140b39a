"""The methods that are compared, and the models that some of them need."""

from importlib.util import find_spec

import pytest

from agentkit.errors import MissingExtraError, UsageError
from agentkit.messages import UserMessage
from agentkit.models.base import ModelRequest
from agentkit.testing import FunctionModel
from agentkit_bench.retrieval import METHODS, Equipment, find_method, measure_method
from agentkit_bench.retrieval.equipment import RememberingModel

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
@pytest.mark.parametrize("method", sorted(set(METHODS) - {"vectors"}))
async def test_every_method_answers(sample, models, method):
    """With an embedding model and a language model all methods can be measured."""
    equipment = Equipment(embedder_name=f"{models}:embed", model_name=f"{models}:model")
    assert not find_method(method).missing(equipment)
    report = await measure_method(find_method(method), sample, equipment=equipment)
    assert report.method == method
    assert 0 < report.quality.shown <= 1
    assert report.cost.tokens > 0
    asks = method in {"paper", "planned"}
    assert (report.cost.model_requests > 0) == asks


def test_what_a_method_lacks_is_known():
    """Without models, those that need one say so."""
    nothing = Equipment()
    assert find_method("default").missing(nothing) == set()
    assert find_method("dense").missing(nothing) == {"embedder"}
    assert find_method("paper").missing(nothing) == {"model"}


@pytest.mark.long
async def test_the_whole_library_is_everything(sample):
    """Without retrieval the model sees all tools, and pays for each."""
    report = await measure_method(find_method("flat_library"), sample)
    assert report.quality.offered == report.quality.shown == 1.0
    assert report.cost.tokens == report.cost.tokens_max > 500


@pytest.mark.parametrize("attribute", ["embed", "Model"])
def test_an_embedder_is_a_function_or_a_class_with_encode(models, attribute):
    """A class is made without arguments; either gives one row a text."""
    embedder = Equipment(embedder_name=f"{models}:{attribute}").embedder
    assert embedder.embed(["the ferry", "a stamp"]).shape == (2, 8)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"embedder_name": "no_such_module:embed"}, "no_such_module"),
        ({"embedder_name": "json:no_such_function"}, "no_such_function"),
        ({}, "--embedder"),
    ],
)
def test_an_embedder_that_can_not_be_had_is_named(names, words):
    """The error says what was looked for, or which option is missing."""
    with pytest.raises(UsageError, match=words):
        _ = Equipment(**names).embedder


@pytest.mark.skipif(
    find_spec("sentence_transformers") is not None, reason="sentence-transformers is installed"
)
def test_a_sentence_transformer_needs_its_package(tmp_path):
    """A name without a colon is a model of sentence-transformers, which is no dependency."""
    with pytest.raises(MissingExtraError, match="sentence-transformers"):
        _ = Equipment(embedder_name=str(tmp_path)).embedder


async def test_a_language_model_is_asked_each_request_once():
    """The same request gets the kept answer, with what it cost."""
    model = FunctionModel(lambda _: f"answer {len(model.requests)}")
    kept = RememberingModel(model)
    request = ModelRequest(messages=(UserMessage(text="?"),))
    first = await kept.complete(request)
    assert (await kept.complete(request)) is first
    other = await kept.complete(ModelRequest(messages=(UserMessage(text="!"),)))
    assert other.message.text == "answer 2"
    assert kept.name == model.name


def test_a_model_of_a_module_must_be_one(models):
    """A name that nobody answers for is looked up as an attribute; what is no model is refused."""
    assert Equipment(model_name=f"{models}:model").model.name == "function"
    with pytest.raises(LookupError, match=models):
        _ = Equipment(model_name=f"{models}:number").model
    with pytest.raises(UsageError, match="--model"):
        _ = Equipment().model
