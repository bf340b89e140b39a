"""Opening what a command was given: stores, artifacts that are only read, and the Tool Manager."""

from __future__ import annotations

import getpass
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from agentkit.cli.loading import load_tools
from agentkit.cli.options import FOLDER
from agentkit.cli.project import current_project, own_folder, vectors_file
from agentkit.episodes import Episode
from agentkit.episodes.labels import INSTRUCTIONS, is_late_verdict, with_late_verdicts
from agentkit.errors import StoreLookupError, UsageError
from agentkit.evolution.compare import EpisodeGates
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.validation.semantic_judge import ModelSemanticJudge
from agentkit.evolution.worth import MOST_TRAFFIC
from agentkit.library import Author, EpisodeFilter, Store
from agentkit.library.chain import environment_signer, key_texts
from agentkit.library.opening import file_of, open_store, place_of
from agentkit.models.base import resolve_model
from agentkit.retrieval.cascade import default_retriever
from agentkit.retrieval.retriever import Retriever
from agentkit.tools.definition import is_instructions
from agentkit.tools.tool import Tool


@contextmanager
def opened(url: str) -> Iterator[Store]:
    """The store at ``url``, closed afterwards. The folder ``.agentkit`` is made when absent."""
    path = file_of(url)
    if path is not None and path.parent.name == FOLDER and not own_folder(path.parent).exists():
        path.parent.mkdir(mode=0o700)
        (path.parent / ".gitignore").write_text("*\n")
    with closing(open_store(url)) as store:
        yield store


@contextmanager
def opened_to_read(url: str) -> Iterator[Store]:
    """The store at ``url`` for a command that makes none: it must exist already.

    Raises:
        StoreLookupError: The URL names a file or a folder that is not there.
    """
    if not is_there(url):
        raise StoreLookupError(
            f"there is no store at {url} yet; start in your project's folder, name another with "
            "--store, or make one with 'agentkit tools add' or 'agentkit tools import FILE'"
        )
    with opened(url) as store:
        yield store


@contextmanager
def opened_if_there(url: str) -> Iterator[Store | None]:
    """The store at ``url``, such as the one of 'agentkit eval'; None where there is none yet."""
    if not is_there(url):
        yield None
        return
    with opened(url) as store:
        yield store


def is_there(url: str) -> bool:
    """Whether the file or the folder of a store exists; other stores are asked when opened."""
    path = place_of(url)
    return path is None or path.exists()


def read_source(place: str) -> AbstractContextManager[Store]:
    """What is at a place: an artifact's file, or the URL of a store, to be read.

    Raises:
        StoreError: There is nothing there.
        ArtifactError: The file is an artifact that cannot be used.
        UsageError: The file is something else.
    """
    path = Path(place).expanduser()
    is_file = file_of(place) is None and (path.is_file() or not re.match(r"\w{2,}:", place))
    return opened_to_read(f"artifact:{place}" if is_file else place)


@contextmanager
def managed(
    store_url: str,
    targets: Sequence[str] = (),
    *,
    lifecycle: LifecyclePolicy | None = None,
    judge: str = "",
) -> Iterator[ToolManager]:
    """The Tool Manager of a store that exists already; the store is closed afterwards.

    Args:
        store_url: Where the library is.
        targets: Python code of tools; see ``load_tools``.
        lifecycle: What proposals have to go through; None for what the project says.
        judge: A model that reads changes that need a judge; empty for none.
    """
    with opened_to_read(store_url) as store:
        yield manager_of(store, load_tools(targets), lifecycle=lifecycle, judge=judge)


def tool_traffic(
    store: Store, evaluations: Store | None, late: Mapping[str, str] | None = None
) -> Callable[[str], tuple[Episode, ...]]:
    """Reads the newest episodes that called a tool, or that read instructions.

    Traffic, and those of 'agentkit eval'.

    Args:
        store: Where the traffic is.
        evaluations: Where the answers of 'agentkit eval' are; None for nowhere.
        late: Verdicts that were kept beside their episodes, the ids of the records with those of
            the episodes; None looks for them.
    """
    places = [one for one in (store, evaluations) if one is not None]

    def read(tool: str) -> tuple[Episode, ...]:
        newest = EpisodeFilter(tool_name=tool, limit=MOST_TRAFFIC)
        if is_instructions(tool):
            newest = EpisodeFilter(labels={INSTRUCTIONS: tool}, limit=MOST_TRAFFIC)
        found = {one.episode_id: one for place in places for one in place.select(newest)}
        verdicts: Iterable[Episode | None]
        if late is None:
            recent = store.select(EpisodeFilter(limit=MOST_TRAFFIC))
            verdicts = [one for one in recent if is_late_verdict(one)]
        else:
            verdicts = (store.get(record) for record, about in late.items() if about in found)
        return with_late_verdicts((*filter(None, verdicts), *found.values()))

    return read


def retriever_of(store: Store) -> Retriever | None:
    """What finds tools in this project; None for the default.

    Raises:
        UsageError: The promoted word vectors are not there, or are damaged.
    """
    project = current_project()
    if project.promoted is None:
        return project.retriever
    if not (digests := manager_of(store).ledger.vectors):
        return project.retriever
    file = vectors_file(digests[-1])
    if not file.is_file():
        words = "copy them there, or take them back with 'agentkit rollback --vectors'"
        raise UsageError(f"the promoted word vectors are not at {file}; {words}")
    return default_retriever(vectors=file, **project.promoted)


def manager_of(
    store: Store,
    tools: Sequence[Tool] = (),
    *,
    lifecycle: LifecyclePolicy | None = None,
    judge: str = "",
    author: Author = Author(kind="program", name="agentkit"),  # noqa: B008 - frozen
) -> ToolManager:
    """The Tool Manager of an open store.

    Args:
        store: Where the library is.
        tools: Code of tools.
        lifecycle: What proposals have to go through; None for what the project says.
        judge: A model that reads changes that need a judge; empty for none.
        author: The author named in its events.
    """
    return ToolManager(
        store,
        tools=tools,
        author=author,
        lifecycle=lifecycle or current_project().policy,
        change_judge=ModelSemanticJudge(resolve_model(judge)) if judge else None,
        gates=EpisodeGates(episodes=store, rules=current_project().rules),
        signer=_EnvironmentKey() if key_texts() else None,
    )


class _EnvironmentKey:
    """Signs events with the key of the environment, read when something is to be signed.

    Who only reads may have a public key there, which is refused then.
    """

    def sign(self, event_hash: str) -> str:
        """See ``Signer.sign``."""
        signer = environment_signer()
        assert signer is not None  # there was a key, and nothing takes it away
        return signer.sign(event_hash)


def person() -> Author:
    """The current user, for the events of the library."""
    try:
        return Author(kind="person", name=getpass.getuser())
    except (OSError, KeyError, ImportError):  # a container's user may have no name
        return Author(kind="person", name="agentkit")
