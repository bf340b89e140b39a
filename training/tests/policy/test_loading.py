"""Loading: real weights from GGUF, and every way in which it can fail."""

import asyncio
import json
import platform
import struct
import sys
from pathlib import Path

import pytest
import torch

from agentkit import Agent
from agentkit.errors import AgentKitError, MissingExtraError, ModelNotFoundError
from agentkit.models.base import ModelSettings
from agentkit_training import PolicyModel, load_policy
from agentkit_training.config.jobs import PolicySection
from agentkit_training.errors import PolicyError
from agentkit_training.policy.loading import read_header
from agentkit_training.policy.policy import tiny_tokenizer
from agentkit_training.policy.saving import save_policy


def save_plain(policy, folder):
    """A folder as transformers writes it, without our record."""
    policy.model.save_pretrained(folder)
    policy.tokenizer.save_pretrained(folder)


def gguf_text(text):
    return struct.pack("<Q", len(text)) + text.encode()


def write_gguf(file, *, kind="model", tensors=0, **numbers):
    """A GGUF file with some metadata, and the first tensor's place if there is to be one."""
    entries = [gguf_text("general.type") + struct.pack("<I", 8) + gguf_text(kind)]
    entries.append(gguf_text("general.architecture") + struct.pack("<I", 8) + gguf_text("llama"))
    words = [gguf_text(word) for word in ("a", "bc")]
    array = struct.pack("<IIQ", 9, 8, len(words)) + b"".join(words)
    entries.append(gguf_text("tokenizer.ggml.tokens") + array)
    entries.append(gguf_text("list") + struct.pack("<IIQ", 9, 5, 3) + struct.pack("<3i", 1, 2, 3))
    entries.append(gguf_text("flag") + struct.pack("<I?", 7, True))
    for key, number in numbers.items():
        entries.append(gguf_text(f"tokenizer.ggml.{key}") + struct.pack("<II", 4, number))
    head = b"GGUF" + struct.pack("<IQQ", 3, tensors, len(entries)) + b"".join(entries)
    place = gguf_text("w") + struct.pack("<IQIQ", 1, 8, 0, 0)
    file.write_bytes(head + place * tensors + bytes(64) * bool(tensors))
    return file


def test_a_folder_of_transformers_is_loaded(policy, tmp_path):
    """A folder that save_pretrained wrote needs nothing of ours."""
    save_plain(policy, tmp_path / "shop")
    again = load_policy(tmp_path / "shop", precision="fp32")
    assert again.name == "shop"
    assert again.end_ids == policy.end_ids
    ids = torch.tensor([[5, 6, 7]])
    assert torch.equal(again.model(input_ids=ids).logits, policy.model(input_ids=ids).logits)


def test_the_precision_is_chosen(policy, tmp_path):
    """The weights come in the precision that was asked for."""
    save_plain(policy, tmp_path)
    assert load_policy(tmp_path, precision="bf16").model.dtype == torch.bfloat16
    assert load_policy(tmp_path, precision="fp32").model.dtype == torch.float32


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux tells what a CPU can do")
def test_auto_goes_by_what_the_cpu_multiplies(policy, tmp_path):
    """Without wide vectors for bf16 torch takes many times as long in it as in fp32."""
    if platform.machine() != "x86_64":
        pytest.skip("these are flags of x86")
    flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    save_plain(policy, tmp_path)
    quick = bool(flags & {"avx512bw", "avx_ne_convert"})
    assert load_policy(tmp_path).model.dtype == (torch.bfloat16 if quick else torch.float32)


def test_a_tokenizer_without_padding_gets_one(policy, tmp_path):
    """The end of text pads where the tokenizer has no padding token."""
    policy.tokenizer.pad_token = None
    save_plain(policy, tmp_path)
    again = load_policy(tmp_path)
    assert again.tokenizer.pad_token == "<|im_end|>"
    assert again.pad_id == again.tokenizer.pad_token_id


def test_a_base_model_needs_a_template_from_us(policy, tmp_path):
    """Without a chat template the error lists those that can be given; then it loads."""
    policy.tokenizer.chat_template = None
    save_plain(policy, tmp_path)
    with pytest.raises(PolicyError, match="'chatml', 'chatml-tools', 'gemma', 'plain'"):
        load_policy(tmp_path)
    given = load_policy(tmp_path, chat_template="plain")
    spoken = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    written = given.tokenizer.apply_chat_template(spoken, tokenize=False)
    assert written == "User: Hi\nAssistant: Ho<|im_end|>\n"
    save_policy(given, tmp_path / "saved")
    assert load_policy(tmp_path / "saved").tokenizer.chat_template == given.tokenizer.chat_template


def test_a_template_of_another_family_is_refused(policy, tmp_path):
    """A template whose end of turn is no token would never let an answer end."""
    save_plain(policy, tmp_path)
    with pytest.raises(PolicyError, match="ends turns with <end_of_turn>, which is no token"):
        load_policy(tmp_path, chat_template="gemma")
    with pytest.raises(PolicyError, match="no chat template 'chatlm'; give one of chatml"):
        load_policy(tmp_path, chat_template="chatlm")
    own = "{% for m in messages %}{{ m.content + eos_token }}{% endfor %}"
    assert load_policy(tmp_path, chat_template=own).tokenizer.chat_template == own


def test_a_tokenizer_that_never_ends_is_refused(policy, tmp_path):
    """A policy whose answers can not end is told of when it is loaded."""
    save_plain(policy, tmp_path)
    for name in ("tokenizer_config.json", "config.json", "generation_config.json"):
        config = json.loads((tmp_path / name).read_text())
        for key in ("eos_token", "eos_token_id"):
            config.pop(key, None)
        (tmp_path / name).write_text(json.dumps(config))
    with pytest.raises(PolicyError, match="no token ends an answer"):
        load_policy(tmp_path, chat_template="{{ messages[0].content }}")


def test_a_folder_without_weights_is_refused(policy, tmp_path):
    """The error says what a folder must hold."""
    policy.tokenizer.save_pretrained(tmp_path)
    policy.model.config.save_pretrained(tmp_path)
    with pytest.raises(PolicyError, match=r"no weights could be loaded.*save_policy"):
        load_policy(tmp_path)


def test_a_tokenizer_of_another_model_is_refused(policy, tmp_path):
    """More tokens than the model has rows would be an index error in the middle of a run."""
    policy.model.save_pretrained(tmp_path)
    larger = tiny_tokenizer([f"word{n} thing{n * 7}" for n in range(500)], size=900)
    larger.save_pretrained(tmp_path)
    with pytest.raises(PolicyError, match=r"knows \d+ tokens and the model \d+:"):
        load_policy(tmp_path)


def test_paths_that_do_not_exist_are_refused(tmp_path):
    """A missing folder, file or name each say what to give; no download is tried."""
    with pytest.raises(PolicyError, match=r"there is no folder .*nowhere"):
        load_policy(tmp_path / "nowhere")
    with pytest.raises(PolicyError, match=r"there is no file .*none\.gguf"):
        load_policy(tmp_path / "none.gguf")
    with pytest.raises(PolicyError, match=r"there is no file .*none\.gguf"):
        load_policy(f"local:{tmp_path}/none.gguf")


@pytest.mark.parametrize("name", ["models/Qwen2.5-1.5B-Instruct", "tinyy", "a/b/c"])
def test_a_name_that_nobody_fetched_is_refused_at_once(monkeypatch, tmp_path, name):
    """No server is asked for it; the error says how to fetch it."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PolicyError, match=rf"no folder {name}, and no model .*hf download"):
        load_policy(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
@pytest.mark.parametrize("weights", ["tiny", "/nowhere"])
def test_a_gpu_that_is_not_there_is_named(weights):
    """The device is looked at before weights are, the tiny ones' too."""
    section = PolicySection(weights=weights, device="cuda:0")
    with pytest.raises(PolicyError, match=r"device is cuda:0, and torch .* sees no GPU"):
        section.load()


def test_missing_local_weights_name_the_line_to_type(monkeypatch, tmp_path):
    """A known name that is not installed says how to install it; an unknown one lists the known."""
    monkeypatch.setenv("AGENTKIT_CACHE", str(tmp_path))
    with pytest.raises(ModelNotFoundError, match="agentkit models install smollm2-135m"):
        load_policy("local:smollm2-135m")
    with pytest.raises(ModelNotFoundError, match="smollm2-135m"):
        load_policy("local:unknown")


@pytest.mark.parametrize("package", ["gguf", "agentkit_local"])
def test_a_missing_package_names_the_line_to_type(monkeypatch, tmp_path, package):
    """What reads GGUF files and finds local weights may be absent."""
    monkeypatch.setitem(sys.modules, package, None)
    source = write_gguf(tmp_path / "m.gguf") if package == "gguf" else "local:smollm2-135m"
    with pytest.raises(MissingExtraError, match=r"Run: pip install agentkit-"):
        load_policy(source)


def test_the_header_of_a_gguf_file_is_read(tmp_path):
    """Special tokens are found among arrays, texts and flags."""
    file = write_gguf(tmp_path / "m.gguf", tensors=1, eos_token_id=1, eot_token_id=0)
    header = read_header(file)
    assert header.architecture == "llama"
    assert header.special_ids == (("eos_token", 1),)
    assert header.turn_end_id == 0


def test_a_broken_gguf_file_is_refused(tmp_path):
    """Each beginning of a file, and other files under its name, are refused as damaged."""
    whole = write_gguf(tmp_path / "m.gguf", tensors=1, eos_token_id=1).read_bytes()
    file = tmp_path / "cut.gguf"
    for size in range(0, len(whole) - 64, 7):
        file.write_bytes(whole[:size])
        with pytest.raises(PolicyError, match=r"cut\.gguf is damaged or no whole GGUF file"):
            load_policy(file)
    file.write_bytes(b"<html>not found</html>" * 10)
    with pytest.raises(PolicyError, match="GGUF magic invalid"):
        load_policy(file)
    file.write_bytes(whole.replace(struct.pack("<IQQ", 3, 1, 6), struct.pack("<IQQ", 9, 1, 6)))
    with pytest.raises(PolicyError, match="version 9"):
        load_policy(file)


def test_a_gguf_file_that_holds_no_model_is_refused(tmp_path):
    """An adapter, and metadata without weights, are told from a model."""
    with pytest.raises(PolicyError, match="holds an adapter and no model"):
        load_policy(write_gguf(tmp_path / "a.gguf", kind="adapter"))
    with pytest.raises(PolicyError, match="no tokenizer could be loaded"):
        load_policy(write_gguf(tmp_path / "m.gguf"))


def test_code_beside_weights_is_not_run(policy, tmp_path):
    """A folder that brings model code of its own is refused, and the code does not run."""
    save_plain(policy, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {
        "model_type": "own",
        "auto_map": {"AutoConfig": "own.C", "AutoModelForCausalLM": "own.M"},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(PolicyError):
        load_policy(tmp_path)
    assert not (tmp_path / "ran").exists()


pytestmark = pytest.mark.weights

QUESTION = "What is the capital of France?"
SMOLLM2 = "local:smollm2-135m"


def loaded(name, **options):
    try:
        return load_policy(name, **options)
    except AgentKitError as error:
        pytest.skip(f"the weights are not there: {error}")


@pytest.fixture
def smollm2():
    return loaded(SMOLLM2)


def test_named_weights_are_unpacked_once(smollm2, monkeypatch):
    """What GGUF packs is kept as plain numbers, so that the next start reads those: the same."""
    monkeypatch.setattr("gguf.GGUFReader", None)
    again = loaded(SMOLLM2)
    assert (again.name, again.end_ids) == (smollm2.name, smollm2.end_ids)
    ids = torch.tensor([smollm2.tokenizer(QUESTION)["input_ids"]])
    assert torch.equal(again.model(input_ids=ids).logits, smollm2.model(input_ids=ids).logits)
    assert load_policy(SMOLLM2, name="own").name == "own"


def test_smollm2_answers_a_question(smollm2):
    """Greedily it names Paris and ends its turn itself; it runs as plain numbers."""
    agent = Agent(PolicyModel(smollm2, max_tokens=32), settings=ModelSettings(temperature=0))
    episode = asyncio.run(agent.run(QUESTION)).episode
    assert "Paris" in episode.turns[0].message.text
    assert episode.turns[0].tokens.completion[-1] in smollm2.end_ids
    assert smollm2.tokenizer.eos_token == "<|im_end|>"
    assert smollm2.end_ids == {2}
    assert type(smollm2.model.lm_head) is torch.nn.Linear
