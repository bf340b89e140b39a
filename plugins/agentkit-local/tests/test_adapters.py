"""LoRA adapters on a local model: they change its answers, and misfits are told."""

import asyncio
import hashlib
import struct
from urllib.parse import quote

import pytest

from agentkit.errors import ModelError, ModelNotFoundError, UsageError
from agentkit.messages import UserMessage
from agentkit.models.base import ModelRequest, resolve_model
from agentkit_local import LocalModel
from agentkit_local.metadata import texts_of

HELLO = ModelRequest(messages=(UserMessage(text="Hello, who is there?"),))


def answer(path, **options):
    """What the model writes, greedily."""
    pytest.importorskip("xllamacpp", reason="the engine is not installed")
    with LocalModel(path, context_tokens=256, max_tokens=12, threads=1, **options) as model:
        return asyncio.run(model.complete(HELLO)).message.text


def test_an_adapter_changes_the_answer(tiny_model, write_adapter):
    """What was trained is what answers, and two adapters answer differently."""
    plain = answer(tiny_model)
    first = answer(tiny_model, adapter=write_adapter("first", seed=1))
    second = answer(tiny_model, adapter=write_adapter("second", seed=2))
    assert len({plain, first, second}) == 3


def test_an_adapter_that_does_not_count_changes_nothing(tiny_model, write_adapter):
    """At scale 0 the base model answers."""
    adapter = write_adapter()
    assert answer(tiny_model, adapter=adapter, adapter_scale=0.0) == answer(tiny_model)
    assert answer(tiny_model, adapter=adapter, adapter_scale=0.5) != answer(
        tiny_model, adapter=adapter
    )


def test_records_tell_which_adapter_answered(tiny_model, write_adapter):
    """The name holds the adapter's file and digest, and a scale that is not 1."""
    adapter = write_adapter()
    digest = hashlib.sha256(adapter.read_bytes()).hexdigest()[:8]
    with LocalModel(tiny_model, adapter=adapter) as model:
        assert model.name == f"local:tiny+shop@{digest}"
    with LocalModel(tiny_model, adapter=adapter, adapter_scale=0.25) as model:
        assert model.name == f"local:tiny+shop@{digest}@0.25"


def test_an_adapter_that_was_trained_further_has_another_name(tiny_model, write_adapter):
    """A file of the same name with other weights is not taken for the earlier one."""
    names = set()
    for seed in (1, 2):
        with LocalModel(tiny_model, adapter=write_adapter(seed=seed)) as model:
            names.add(model.name)
    assert len(names) == 2


@pytest.mark.parametrize("stem", ["shop", "two words & more", "50% off?", "a+b"])
def test_a_name_carries_the_adapter(tiny_model, write_adapter, stem):
    """``local:MODEL?adapter=FILE&scale=X`` means both, whatever the file is called."""
    adapter = write_adapter(stem)
    name = f"local:{tiny_model}?adapter={quote(str(adapter))}&scale=0.5"
    with resolve_model(name) as model:
        assert model.name.startswith(f"local:tiny+{stem}@")
        assert model.name.endswith("@0.5")


def test_a_name_says_that_calls_are_written_freely(tiny_model):
    """``?constrained=no`` decodes without a grammar, and records tell such answers apart."""
    with resolve_model(f"local:{tiny_model}?constrained=no") as model:
        assert model.name == "local:tiny?constrained=no"
    with resolve_model(f"local:{tiny_model}?constrained=yes") as model:
        assert model.name == "local:tiny"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("scale=0.5", "no adapter"),
        ("adapter=", "not understood"),
        ("adapter=a.gguf&adapter=b.gguf", "one adapter"),
        ("adapter=a.gguf&rank=8", "'rank=8'"),
        ("adapter=a.gguf&scale=much", "'much'"),
        ("adapter=a.gguf&scale=nan", "nan times"),
        ("constrained=perhaps", "yes or no, not 'perhaps'"),
    ],
)
def test_options_that_can_not_be_meant_are_misuse(tiny_model, options, complaint):
    """What stands behind the question mark is not guessed at."""
    with pytest.raises(UsageError, match=complaint):
        resolve_model(f"local:{tiny_model}?{options}")


def test_a_file_may_be_named_with_a_question_mark(tiny_model, tmp_path):
    """Only the names of options begin options."""
    odd = tmp_path / "what?.gguf"
    odd.write_bytes(tiny_model.read_bytes())
    with resolve_model(f"local:{odd}") as model:
        assert model.name == "local:what?"


def test_an_absent_adapter_is_told_at_once(tiny_model, tmp_path):
    """Before anything is loaded, and by name."""
    with pytest.raises(ModelNotFoundError, match=r"no adapter .*absent\.gguf"):
        LocalModel(tiny_model, adapter=tmp_path / "absent.gguf")


def test_an_adapter_in_peft_form_names_what_converts_it(tiny_model, tmp_path):
    """The folder or the safetensors that training holds is not what llama.cpp reads."""
    (tmp_path / "adapter_model.safetensors").write_bytes(struct.pack("<Q", 2) + b"{}")
    for place in (tmp_path, tmp_path / "adapter_model.safetensors"):
        with pytest.raises(ModelNotFoundError, match="adapter_to_gguf"):
            LocalModel(tiny_model, adapter=place)


def test_a_model_is_no_adapter(tiny_model):
    """Whoever gives the weights twice is told the order."""
    with pytest.raises(ModelNotFoundError, match=r"type 'model', not a LoRA adapter"):
        LocalModel(tiny_model, adapter=tiny_model)


def test_an_adapter_of_another_architecture_is_refused(tiny_model, write_adapter):
    """Both architectures stand in the message."""
    with pytest.raises(ModelNotFoundError, match=r"'gemma3', and .* is of 'llama'"):
        LocalModel(tiny_model, adapter=write_adapter(general__architecture="gemma3"))


def test_an_adapter_of_another_shape_is_told_when_it_is_loaded(
    tiny_model, write_adapter, engine_says
):
    """llama.cpp says which tensor on stderr, the error which two files do not fit."""
    with pytest.raises(ModelError, match=r"tiny\.gguf with the adapter .*shop\.gguf"):
        answer(tiny_model, adapter=write_adapter(wide=48))
    assert engine_says("blk.0.attn_")


def test_no_beginning_of_a_file_is_taken_for_the_whole(tiny_model, write_adapter):
    """Cut off anywhere in its entries, an adapter is refused with a reason, never with a crash."""
    adapter = write_adapter()
    whole = adapter.read_bytes()
    for length in range(whole.index(b"adapter.lora.alpha") - 8):
        adapter.write_bytes(whole[:length])
        with pytest.raises(ModelNotFoundError, match=r"shop\.gguf"):
            LocalModel(tiny_model, adapter=adapter)


@pytest.mark.parametrize(
    "content",
    [
        b"GGUF" + struct.pack("<IQQ", 9, 0, 0),
        b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 62),
        b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 4, 1 << 62),
        b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 9, 1 << 62),
        b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"k", 99),
    ],
)
def test_lengths_that_a_file_claims_are_not_believed(tmp_path, content):
    """Huge counts, nested arrays and unknown kinds end in an error at once."""
    path = tmp_path / "odd.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelNotFoundError, match=r"odd\.gguf is damaged"):
        texts_of(path, ["general.type"])


@pytest.mark.weights
def test_an_adapter_changes_the_real_model(model, write_adapter):
    """SmolLM2 answers otherwise with one, and as ever where it counts nothing."""
    adapter = write_adapter(wide=576, places=["output"])
    plain = answer("smollm2-135m")
    assert answer("smollm2-135m", adapter=adapter, adapter_scale=0.1) != plain
    assert answer("smollm2-135m", adapter=adapter, adapter_scale=0.0) == plain
