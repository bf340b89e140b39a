"""From a name or a path to a model, and what is said when there is none."""

import os
import subprocess
import sys

import pytest

from agentkit.errors import ModelError, ModelNotFoundError, UsageError
from agentkit.messages import UserMessage
from agentkit.models.base import ModelRequest
from agentkit.models.resolve import resolve_model
from agentkit_local import LocalEngine, LocalModel

HELLO = ModelRequest(messages=(UserMessage(text="Hello"),))


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
