"""Word vectors that learn what users call the tools of a store."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from agentkit import Library, ToolDefinition, open_store
from agentkit.cli.main import main as runtime
from agentkit.episodes import Episode, Turn, Verdict
from agentkit.errors import UsageError
from agentkit.evolution import ToolManager
from agentkit.messages import AssistantMessage, ToolCall, ToolResult
from agentkit.retrieval import StaticEmbedder, TrainedVectors, default_retriever, default_stages
from agentkit.retrieval.word_vectors import packaged_folder
from agentkit_training import Request, requests_of, train_retriever, write_vectors
from agentkit_training.cli.main import main
from agentkit_training.errors import TrainingError

_WORDS = [
    (a, b)
    for a in ("ka", "lo", "mi", "nu", "pe", "ra")
    for b in ["so", "ti", "vu", "wa", "xe", "zo"]
]
TOOLS = {
    f"run_{a}{b}": (f"Does {b}{a}.", f"{c}{d}{c} {d}{d}{c} {c}{c}{d}")
    for (a, b), (c, d) in zip(_WORDS, _WORDS[17:] + _WORDS[:17], strict=True)
}
"""By tool what it says of itself, and the words of its users, which sound like those of another."""

DEFINITIONS = [ToolDefinition.from_schema(name, text, {}) for name, (text, _) in TOOLS.items()]
FILLING = "please can you now today for me the a my our with this"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Word vectors that know every word of the tests, and nothing of what goes together."""
    folder = tmp_path_factory.mktemp("words")
    texts = [f"{name} {text} {said}" for name, (text, said) in TOOLS.items()]
    words = sorted(
        {*" ".join([*texts, FILLING, "unseen"]).lower().replace(".", " ").replace("_", " ").split()}
    )
    letters = sorted({letter for word in words for letter in word})
    vocabulary = {piece: at for at, piece in enumerate(_merges(words, letters))}
    table = np.random.default_rng(0).normal(size=(len(vocabulary), 32)).astype(np.float16)
    entry = {"dtype": "F16", "shape": list(table.shape), "data_offsets": [0, table.nbytes]}
    header = json.dumps({"embedding.weight": entry}).encode()
    for place in ("weights", "tokenizers"):
        (folder / place).mkdir()
    (folder / "weights" / "l2_supercat_256.safetensors").write_bytes(
        len(header).to_bytes(8, "little") + header + table.tobytes()
    )
    (folder / "tokenizers" / "l2_supercat_tokenizer_config.json").write_text(
        json.dumps({"model": {"vocab": vocabulary}})
    )
    return StaticEmbedder(folder)


def _merges(words: list[str], letters: list[str]) -> list[str]:
    """Pieces from which each word is merged letter by letter."""
    pieces = ["▁", *letters]
    for word in words:
        pieces += [f"▁{word[:end]}" for end in range(1, len(word) + 1)]
    return list(dict.fromkeys(pieces))


@pytest.fixture
def library():
    return Library(DEFINITIONS)


def asked(count: int, *, only: tuple[str, ...] = tuple(TOOLS)) -> list[Request]:
    """Requests in the words of users, no two the same."""
    draw = random.Random(1)
    found = {}
    while len(found) < count:
        name = draw.choice(only)
        said = draw.sample(TOOLS[name][1].split(), 2) + draw.sample(FILLING.split(), 4)
        draw.shuffle(said)
        found[" ".join(said)] = name
    return [Request(text=text, tools=frozenset({name})) for text, name in found.items()]


@pytest.fixture(scope="module")
def vectors(base):
    library = Library(DEFINITIONS)
    found = train_retriever(library, asked(300), base=base, source="a test").vectors
    assert found is not None
    return found


def test_held_back_requests_find_their_tools(vectors):
    """Words that stand in no tool lead to the right ones, on requests that training never saw."""
    assert vectors.figures["held_back.before@5"] < vectors.figures["held_back.after@5"]
    assert vectors.figures["held_back.after@5"] > 0.9
    assert vectors.provenance["source"] == "a test"


def test_words_that_training_never_saw_keep_their_vectors(base, vectors):
    """Only pieces of the tools and the requests have another vector afterwards."""
    trained = replace(base, trained=vectors)
    assert (trained.embed(["unseen"])[:, 0] != 0).any()
    untouched = np.setdiff1d(base.pieces_of("unseen"), vectors.pieces)
    assert (trained.vectors_of(untouched) == base.vectors_of(untouched)).all()
    assert not np.allclose(trained.embed(["kakati"]), base.embed(["kakati"]))


def test_a_file_is_read_as_it_was_written(vectors, tmp_path):
    """Numbers, figures and provenance survive, and the file is small."""
    path = tmp_path / "shop.vectors"
    write_vectors(vectors, path)
    found = TrainedVectors.read(path)
    assert found == vectors
    assert (found.rows == vectors.rows).all()
    assert (found.figures, found.provenance) == (vectors.figures, vectors.provenance)
    assert path.stat().st_size < 16_000_000


def test_vectors_of_another_release_are_refused(base, vectors):
    """Vectors that changed other word vectors than those that are installed would mix two models."""
    other = replace(vectors, base="probe:3x32:0000000000000000")
    with pytest.raises(UsageError, match="changed other word vectors"):
        replace(base, trained=other).embed(["text"])


@pytest.mark.parametrize(
    "damage",
    [
        lambda body: body[:-1] + bytes([body[-1] ^ 1]),
        lambda body: body[:-40],
        lambda body: body.replace(b"agentkit.vectors/1", b"agentkit.vectors/9"),
        lambda _: b"",
        lambda _: b"\xff" * 100,
    ],
    ids=["changed number", "cut off", "another version", "empty", "something else"],
)
def test_a_damaged_file_is_refused_in_one_line(vectors, tmp_path, damage):
    """Whatever is wrong with a file, it is named, with what to do."""
    path = tmp_path / "shop.vectors"
    write_vectors(vectors, path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UsageError, match=r"shop.vectors cannot be read .*agentkit-train") as told:
        TrainedVectors.read(path)
    assert "\n" not in str(told.value)


def test_too_few_requests_are_refused(base, library):
    """It takes forty requests for two tools; what is missing is said."""
    with pytest.raises(TrainingError, match=r"39 different requests for \d+ tools"):
        train_retriever(library, asked(39), base=base)
    with pytest.raises(TrainingError, match="for 1 tools"):
        train_retriever(library, asked(50, only=("run_kaso",)), base=base)


def test_nothing_is_written_where_nothing_is_gained(base, library):
    """Requests that say the tools' own names leave nothing to learn, and the report says so."""
    spoken = [
        Request(text=f"{name} {word}", tools=frozenset({name}))
        for name in TOOLS
        for word in FILLING.split()
    ]
    report = train_retriever(library, spoken, base=base)
    assert report.vectors is None
    assert "must rise by 0.5" in report.why


def test_trained_vectors_take_the_place_of_examples(base, vectors):
    """Both have learned from the same requests, so the stage of examples is left out."""
    names = [stage.name for stage in default_stages(embedder=replace(base, trained=vectors))]
    assert "examples" in [stage.name for stage in default_stages(embedder=base)]
    assert "examples" not in names


def episode(number: int, request: Request, *, passed: bool = True) -> Episode:
    (name,) = request.tools
    call = ToolCall(call_id="1", name=name, arguments={})
    result = ToolResult(call_id="1", name=name, status="ok", value="done")
    turn = Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,))
    return Episode(
        episode_id=f"e{number}", request=request.text, turns=(turn,), verdict=Verdict(passed=passed)
    )


def test_only_episodes_that_passed_are_learned_from():
    """A request is learned with the tools that were called, where a verdict says that it passed."""
    good, bad = asked(2)
    assert requests_of([episode(1, good), episode(2, bad, passed=False)]) == (good,)


needs_vectors = pytest.mark.skipif(
    packaged_folder() is None, reason="the word vectors of the extra `vectors` are not installed"
)


@needs_vectors
@pytest.mark.parametrize("from_file", [False, True])
def test_the_command_learns_from_a_store(tmp_path, *, from_file):
    """Tools and passed episodes are a store's, requests a file's where one is given."""
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    store = open_store(url)
    ToolManager(store).register(DEFINITIONS, reason="the tools of a test")
    given, path = asked(400), tmp_path / "shop.vectors"
    requests = tmp_path / "asked.jsonl"
    records = [{"query": one.text, "gold": [*one.tools]} for one in given]
    requests.write_text("\n".join(map(json.dumps, records)))
    if not from_file:
        store.append_many([episode(number, one) for number, one in enumerate(given)])
    store.close()
    options = ["--store", url, "--output", str(path)]
    options += ["--requests", str(requests), "--json"] if from_file else []
    result = CliRunner().invoke(main, ["retriever", *options])
    assert result.exit_code == 0, result.output
    vectors = TrainedVectors.read(path)
    assert vectors.provenance["source"] == ("asked.jsonl" if from_file else url)
    if from_file:
        report = json.loads(result.stdout)
        assert (report["requests"], report["digest"]) == (400, vectors.digest)
        return
    assert "requests held back" in result.stdout
    retriever = default_retriever(vectors=path)
    library = Library(DEFINITIONS)
    found = asyncio.run(retriever.retrieve(f"{TOOLS['run_kaso'][1]} please", library))
    assert found.offered[0].name == "run_kaso"


@needs_vectors
def test_vectors_are_promoted_and_taken_back(tmp_path, monkeypatch):
    """The log says which vectors a project reads; going back is one command, and is logged, too."""
    monkeypatch.chdir(tmp_path)
    text = 'store = "sqlite:///shop.db"\n[retrieval]\nvectors = "promoted"\n'
    (tmp_path / "agentkit.toml").write_text(text)
    store = open_store("sqlite:///shop.db")
    ToolManager(store).register(DEFINITIONS, reason="the tools of a test")
    store.append_many([episode(number, one) for number, one in enumerate(asked(400))])

    def first(query: str) -> str:
        done = CliRunner().invoke(runtime, ["search", query, "--json"])
        assert done.exit_code == 0, done.output
        return (json.loads(done.stdout)["offered"] or [""])[0]

    query = f"{TOOLS['run_kaso'][1]} please"
    before = first(query)
    given = ["retriever", "--store", "sqlite:///shop.db", "--promote"]
    result = CliRunner().invoke(main, given)
    assert result.exit_code == 0, result.output
    (digest,) = ToolManager(store).ledger.vectors
    (kept,) = (tmp_path / ".agentkit" / "vectors").iterdir()
    assert TrainedVectors.read(kept).digest == digest
    assert before != "run_kaso" == first(query)
    kept.rename(tmp_path / "away")
    gone = CliRunner().invoke(runtime, ["search", query])
    assert gone.exit_code == 2
    assert "the promoted word vectors are not at" in gone.stderr
    (tmp_path / "away").rename(kept)
    back = CliRunner().invoke(runtime, ["rollback", "--vectors", "--reason", "too narrow"])
    assert back.exit_code == 0, back.output
    assert ToolManager(store).ledger.vectors == ()
    assert first(query) == before
    kinds = [one.kind for one in store.events()][-2:]
    assert kinds == ["vectors_promoted", "vectors_taken_back"]
    assert CliRunner().invoke(runtime, ["rollback", "--vectors"]).exit_code == 2
    assert CliRunner().invoke(runtime, ["log", "--verify"]).exit_code == 0
    store.close()


@needs_vectors
def test_the_command_learns_from_files(tmp_path):
    """Tools and requests may be files, and --json prints what came of it."""
    tools, requests = tmp_path / "tools.jsonl", tmp_path / "asked.jsonl"
    tools.write_text(
        "\n".join(
            json.dumps({"id": f"id-{name}", "name": name, "description": text})
            for name, (text, _) in TOOLS.items()
        )
    )
    requests.write_text(
        "\n".join(
            json.dumps({"query": one.text, "gold": [f"id-{name}" for name in one.tools]})
            for one in asked(400)
        )
    )
    path = tmp_path / "shop.vectors"
    given = ["--tools", str(tools), "--requests", str(requests), "--output", str(path), "--json"]
    result = CliRunner().invoke(main, ["retriever", *given])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["requests"] == 400
    assert report["digest"] == TrainedVectors.read(path).digest


def test_a_file_of_tools_has_no_episodes(tmp_path):
    """--tools alone is misuse: there is nothing that was asked."""
    tools = tmp_path / "tools.jsonl"
    tools.write_text('{"name": "run_kaso"}')
    result = CliRunner().invoke(main, ["retriever", "--tools", str(tools), "--output", "x"])
    assert result.exit_code == 2
    assert "--requests FILE" in result.stderr
