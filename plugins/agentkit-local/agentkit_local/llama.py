"""llama.cpp inside the process: load a GGUF file, generate, stop.

The rest of the package knows nothing of xllamacpp but this module. Its functions block, and are
called from one thread at a time.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from agentkit.errors import MissingExtraError, ModelError, ModelNotFoundError
from agentkit_local.adapters import Adapter
from agentkit_local.metadata import MAGIC
from agentkit_local.threads import sleeping_threads

_QUIET, _VERBOSE = 1, 3  # errors alone, or everything worth a line
_BATCH = 128  # prompt tokens computed between two looks at "stop": about a second on two cores

Chunk = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadOptions:
    """How to load a file.

    Attributes:
        threads: Threads to compute with.
        context_tokens: Longest prompt and answer together.
        verbose: Let llama.cpp report on stderr; otherwise only its errors appear.
        adapter: A LoRA adapter to add to the weights; None for none.
    """

    threads: int
    context_tokens: int
    verbose: bool = False
    adapter: Adapter | None = None


def check_file(path: Path) -> None:
    """Find out, without loading it, whether ``path`` can be a GGUF file.

    Raises:
        ModelNotFoundError: There is no such file, or it is something else.
    """
    if not path.is_file():
        raise ModelNotFoundError(f"there is no file {path}; give the path of a .gguf file")
    with path.open("rb") as file:
        start = file.read(len(MAGIC))
    if start != MAGIC:
        raise ModelNotFoundError(
            f"{path} is not a GGUF file: it starts with {start!r}, not {MAGIC!r}. Models in other "
            "formats have to be converted (llama.cpp's convert_hf_to_gguf.py)"
        )


class Llama:
    """A loaded model.

    llama.cpp's server object always listens somewhere. Here that is a socket file in a private
    folder, deleted as soon as it exists, so that nothing outside the process can reach the model.
    """

    def __init__(self, path: Path, options: LoadOptions) -> None:
        """Load the file; takes about a second for 100 MB.

        Raises:
            ModelNotFoundError: There is no such GGUF file.
            ModelError: llama.cpp cannot load it.
            MissingExtraError: llama.cpp or the OpenMP runtime is not installed.
        """
        check_file(path)
        self._library = load_library()
        folder = tempfile.mkdtemp(prefix="agentkit-")
        try:
            self._server = self._library.Server(self._parameters(path, options, folder))
        except RuntimeError as error:
            raise ModelError(_not_loaded(path, options.adapter, error)) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _parameters(self, path: Path, options: LoadOptions, folder: str) -> Any:
        parameters = self._library.CommonParams()
        parameters.model.path = str(path)
        parameters.n_ctx = options.context_tokens
        parameters.n_batch = parameters.n_ubatch = _BATCH
        parameters.n_parallel = 1  # one slot, so that a prompt's beginning is computed once
        parameters.cache_ram_mib = 0
        parameters.warmup = False
        parameters.verbosity = _VERBOSE if options.verbose else _QUIET
        parameters.cpuparams.n_threads = options.threads
        parameters.cpuparams_batch.n_threads = options.threads
        parameters.hostnames = [f"{folder}/llama.sock"]
        parameters.n_threads_http = 1
        parameters.endpoint_slots = parameters.ui = False
        if options.adapter is not None:
            added = self._library.CommonAdapterLoraInfo(
                str(options.adapter.path), options.adapter.scale
            )
            parameters.lora_adapters = [added]
        return parameters

    def chat(
        self,
        body: Mapping[str, Any],
        is_stopped: Callable[[], bool],
        show: Callable[[Chunk], None] | None = None,
    ) -> list[Chunk]:
        """The chunks of a streamed answer; fewer when ``is_stopped`` says so on the way.

        Args:
            body: The request.
            is_stopped: Asked after each chunk.
            show: Is given each chunk as it comes, in this thread; must not raise.
        """
        chunks: list[Chunk] = []

        def receive(chunk: Chunk) -> bool:
            chunks.append(chunk)
            if is_stopped():
                return True
            if show is not None:
                show(chunk)
            return False

        request = {
            **body,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,  # a look at "stop" after each batch of the prompt
        }
        self._server.handle_chat_completions(request, receive)
        return chunks

    def grammar(self, schema: Mapping[str, Any]) -> str:
        """The grammar of compact JSON under ``schema``.

        Sent as a schema, the engine would allow any white space, and small models then spend half
        of their tokens on indentation.
        """
        compact = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
        grammar: str = self._library.json_schema_to_grammar({**schema, "x-guidance": compact})
        return grammar

    def close(self) -> None:
        """Free the memory."""
        del self._server


def _not_loaded(path: Path, adapter: Adapter | None, error: RuntimeError) -> str:
    said = f"{error} Its lines on stderr say more."
    if adapter is None:
        return (
            f"llama.cpp could not load {path}: {said} The file may be damaged, of a newer kind "
            "than this xllamacpp, or too large for memory"
        )
    return (
        f"llama.cpp could not load {path} with the adapter {adapter.path}: {said} The adapter may "
        "be one of another model of the same kind (its shapes must fit), or a file be damaged"
    )


def load_library() -> ModuleType:
    """Import xllamacpp, its threads set to sleep while they wait.

    Raises:
        MissingExtraError: It, or the OpenMP runtime that it needs, is not installed.
    """
    try:
        with sleeping_threads():
            import xllamacpp
    except ImportError as error:
        if "libgomp" in str(error):
            raise MissingExtraError(
                "the local model",
                package="libgomp1",
                install="apt-get install libgomp1 (Debian, Ubuntu) or dnf install libgomp (Fedora)",
            ) from error
        raise MissingExtraError(
            "the local model", package="xllamacpp", install="pip install xllamacpp"
        ) from error
    library: ModuleType = xllamacpp
    return library
