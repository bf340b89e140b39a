"""The commands, one function each."""

from __future__ import annotations

import re
import shlex
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import click

from agentkit.cli.boundary import EXIT_INTERRUPTED
from agentkit.cli.evaluate import print_evaluation
from agentkit.cli.options import AsJson, StoreUrl, command, option
from agentkit.cli.output import print_json, print_line, say
from agentkit.cli.project import vectors_file
from agentkit.cli.stores import managed, opened_to_read, person
from agentkit.errors import UsageError
from agentkit.library import Library
from agentkit.library.copying import episodes_of
from agentkit.models.base import resolve_model
from agentkit.retrieval import TrainedVectors
from agentkit_training.cli.show import (
    show_combinations,
    show_dry_run,
    show_handover,
    show_recall,
    show_recipe,
    show_recipes,
    show_result,
    shown_steps,
)
from agentkit_training.config.jobs import (
    CoevolveConfig,
    EvaluationConfig,
    SftConfig,
    named_run,
)
from agentkit_training.config.reading import parse_config, read_config
from agentkit_training.distributed.ranks import (
    company,
    end_together,
    has_the_word,
    joined_ranks,
    left_ranks,
    was_interrupted,
)
from agentkit_training.export.handover import library_of
from agentkit_training.jobs.coevolve import coevolve_job
from agentkit_training.jobs.evaluate import (
    Trained,
    combinations,
    evaluate_job,
    export_job,
    handover_of,
    trained_by,
)
from agentkit_training.jobs.running import REPORT
from agentkit_training.jobs.sft import sft_job
from agentkit_training.recipes import load_recipe
from agentkit_training.report import run_html
from agentkit_training.retriever import (
    Request,
    read_catalogue,
    read_requests,
    requests_of,
    train_retriever,
    write_vectors,
)
from agentkit_training.runs import PROVENANCE, RunDirectory, ignore
from agentkit_training.tasks.loading import load_tasks_for_training

_NAME, _DEMO = "agentkit-train", "demo.yaml"
_SECONDS_TO_TELL = 3.0
"""How long a process that ends without a word leaves the one that has it: ``torchrun`` ends all
as soon as one is gone."""


_FOLDER = click.Path(path_type=Path, file_okay=False)
_PAGE = click.Path(path_type=Path, dir_okay=False, writable=True)
_OLD_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)
_OLD_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
_Changes = Annotated[tuple[str, ...], option("--set", default=())]
_Folder = Annotated[Path, option("--output", type=_FOLDER, required=True)]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of the commands that make a run.

    Attributes:
        folder (DIRECTORY): Folder of the run.
        changes (KEY=VALUE): Change a key of the configuration, such as
            engine.optimizer.learning_rate=1e-5.
        resume: Go on with the run that is in the folder.
        dry_run: Build everything but the weights, say what would be done, and stop.
    """

    folder: _Folder
    changes: _Changes = ()
    resume: bool = False
    dry_run: bool = False


def _command_line() -> str:
    """What was typed, for the record of the run; with how many processes, where there are more."""
    name = Path(sys.argv[0]).name
    typed = shlex.join([_NAME if name.endswith(".py") else name, *sys.argv[1:]])
    _, world = company()
    return typed if world == 1 else f"{typed}  # in {world} processes"


@command()
def sft(config: Path, options: RunOptions) -> None:
    """Fine-tune on the gold answers of tasks, as the file CONFIG says.

    With a section 'toolace' the tasks are selected in rounds by what the policy can learn from,
    and self-refine samples are added (ToolACE-R).

    Examples:
      agentkit-train sft examples/sft.yaml --output runs/sft
      agentkit-train sft examples/sft.yaml --output runs/sft --resume
      agentkit-train sft examples/sft.yaml --output runs/sft2 --set sft.epochs=2
    """
    with told_once():
        _run(read_config(config, SftConfig, changes=options.changes), options)
    end_together()


@command()
def coevolve(config: Path, options: RunOptions, *, ablation: str | None = None) -> None:
    """Train the policy while its tools' texts and their library learn, as CONFIG says.

    Each switch of the section 'coevolution' is one mechanism of a paper; --ablation sets all of
    them at once, with the paper's KL divergence and mini-batches.

    Args:
        ablation (NAME): A named configuration of the papers, such as seal-no-weighting.

    Examples:
      agentkit-train coevolve examples/coevolve.yaml --output runs/loans
      agentkit-train coevolve examples/coevolve.yaml --output runs/tooldna --ablation tooldna
      agentkit-train coevolve examples/coevolve.yaml --output runs/loans --resume
    """
    with told_once():
        wanted = read_config(config, CoevolveConfig, changes=options.changes)
        if ablation is not None:
            wanted = named_run(ablation, wanted)
        _run(wanted, options)
    end_together()


@command()
def grpo(config: Path, options: RunOptions) -> None:
    """Train the policy with rewards alone, as CONFIG says; the library stays as it is.

    Weights by diagnosis and the training interface (SEAL) may be on; what changes the library
    belongs to 'coevolve'.

    Examples:
      agentkit-train grpo examples/grpo.yaml --output runs/grpo
      agentkit-train grpo examples/grpo.yaml --output runs/trl --set engine.name=trl
    """
    with told_once():
        wanted = read_config(config, CoevolveConfig, changes=options.changes)
        if wanted.coevolution.changes_library:
            raise UsageError(
                f"{config} has a switch on that changes the library; use agentkit-train coevolve, "
                "or turn evolution, feedback, evidence and composites off"
            )
        _run(wanted, options)
    end_together()


@command()
def recipe(
    name: str = "",
    *,
    folder: Annotated[Path | None, option("--output", type=_FOLDER)] = None,
    row: tuple[str, ...] = (),
    seed: Annotated[int, option(type=int)] = 0,
    changes: _Changes,
    resume: bool = False,
    dry_run: bool = False,
) -> None:
    """Repeat the table of a paper: its settings, row by row, with our figures beside its own.

    Without NAME the recipes are listed. Without --output the recipe NAME is shown: what is
    substituted, how long it takes, and the table. With it the rows are run, each in a folder of its
    own; those that have ended are not run again.

    Args:
        folder (DIRECTORY): Folder of the runs.
        row (NAME): This row alone.
        seed (NUMBER): Of the runs and their tasks.
        changes (KEY=VALUE): Change a key, such as policy.weights=local:smollm2-135m.
        resume: Go on with a run that was broken off.
        dry_run: Say what each row would do, and stop.

    Examples:
      agentkit-train recipe
      agentkit-train recipe seal
      agentkit-train recipe tooldna --output runs/tooldna --row 'no feedback'
    """
    if not name:
        show_recipes()
        return
    found = load_recipe(name)
    names = [one.name for one in found.rows]
    if unknown := [one for one in row if one not in names]:
        raise UsageError(f"{name} has no row {unknown[0]!r}; it has {', '.join(names)}")
    wanted = [one for one in found.rows if not one.is_base and (not row or one.name in row)]
    done = (
        {one.name for one, ours, _ in found.results(folder) if ours is not None} if folder else ()
    )
    for one in wanted if folder is not None or dry_run else ():
        if one.name in done:
            continue
        say(f"{one.name}:")
        options = RunOptions(folder=(folder or Path()) / one.folder, resume=resume, dry_run=dry_run)
        with told_once():
            _run(found.run_of(one, changes=changes, seed=seed), options)
    if not dry_run and not company()[0]:
        show_recipe(found, folder)
    end_together()


def _run(config: SftConfig | CoevolveConfig, options: RunOptions) -> None:
    """Run a job in all processes; rank 0 shows its records and what came of it."""
    if options.dry_run:
        rank, world = company()
        if rank == 0:
            show_dry_run(config, processes=world)
        return
    ranks = joined_ranks(on_cpu=config.policy.device == "cpu")
    if ranks.rank:
        _quiet()
    steps = None if isinstance(config, SftConfig) else config.coevolution.steps
    with nullcontext(ignore) if ranks.rank else shown_steps(steps=steps) as tell:
        given: dict[str, Any] = {
            "command": _command_line(),
            "resumes": options.resume,
            "listen": tell,
            "ranks": ranks,
        }
        if isinstance(config, SftConfig):
            run = sft_job(config, options.folder, **given)
        else:
            run = coevolve_job(config, options.folder, **given)
    if ranks.rank == 0:
        show_result(run)


def _quiet() -> None:
    """Keep what libraries say to rank 0, which says it as well."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    warnings.simplefilter("ignore")


@contextmanager
def told_once() -> Iterator[None]:
    """Let one process tell of an error, the first that failed by itself; the others end quietly.

    Of a run that Ctrl-C ended the folder is told as well, and how to go on.
    """
    rank, world = company()
    try:
        yield
    except click.exceptions.Exit:
        raise
    except BaseException as error:
        has_word = has_the_word(error) if world > 1 and not was_interrupted(error) else True
        left_ranks()
        if was_interrupted(error):
            _tell_where(rank)
            if rank:
                raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
            raise KeyboardInterrupt from error
        if not has_word:
            time.sleep(_SECONDS_TO_TELL)
            raise click.exceptions.Exit(1) from None
        if rank:
            say(f"In process {rank} of {world}:")
        raise


def _tell_where(rank: int) -> None:
    """Say in which folder the run is that Ctrl-C ended, where there is one, and how it goes on."""
    context = click.get_current_context(silent=True)
    given = context.params if context else {}
    folder: Path | None = given.get("folder") if "resume" in given else None
    if folder is not None and not rank and (folder / PROVENANCE).is_file():
        say(f"\nThe run is in {folder}; give the same command with --resume to go on with it.")


@command()
def demo(
    *,
    folder: Annotated[Path, option("--output", type=_FOLDER)] = Path("runs/demo"),
    changes: _Changes,
    resume: bool = False,
) -> None:
    """Train a small real model on a CPU while its library learns, then ask the runtime.

    The tools refuse what their definitions do not say. The policy is fine-tuned on a few gold
    answers and trained with rewards; what the tools refuse becomes rules of the library, through
    the Tool Manager. At the end the runtime answers held-out questions with either model and
    either library.

    Args:
        folder (DIRECTORY): Folder of the run.
        changes (KEY=VALUE): Change a key of the configuration.
        resume: Go on with the run that is in the folder.

    Examples:
      agentkit-train demo
      agentkit-train demo --output runs/demo --set coevolution.steps=2
    """
    text = resources.files("agentkit_training").joinpath(_DEMO).read_text(encoding="utf-8")
    wanted = parse_config(text, CoevolveConfig, name=_DEMO, changes=changes)
    begun = time.monotonic()
    with told_once(), shown_steps(steps=wanted.coevolution.steps) as tell:
        run = coevolve_job(wanted, folder, command=_command_line(), resumes=resume, listen=tell)
    say(f"Trained in {time.monotonic() - begun:.0f} s. Now the runtime answers, by itself:")
    handed = handover_of(run)
    test = load_tasks_for_training(wanted.tasks).test
    show_combinations(list(combinations(handed, test, wanted.asking.settings(), tell=say)))
    print_line(f"The whole took {time.monotonic() - begun:.0f} s. The run: {run.path}, with its")
    print_line("curves in report.html. Ask the trained model with the evolved library:")
    click.echo(f"  {handed.command}")


@command()
def evaluate(
    config: Path,
    *,
    run: Annotated[Path | None, option(type=_OLD_FOLDER)] = None,
    model: str | None = None,
    library: Annotated[Path | None, option(type=click.Path(path_type=Path, exists=True))] = None,
    part: Literal["train", "validation", "test"] = "test",
    attempts: int = 1,
    temperature: Annotated[float, option(type=click.FloatRange(min=0))] = 0.0,
    as_json: AsJson,
    changes: _Changes,
) -> None:
    """Measure a model on the tasks of the file CONFIG, as training measures them.

    Without --run and --model the policy of CONFIG answers as it is before training. Accuracy is
    pass@1 over the attempts; tokens, calls and failure labels stand beside it. Give --run with the
    run's own config.yaml: another seed may ask what it has learned from.

    Args:
        run (DIRECTORY): Ask what a finished run left: its adapter or weights, and its library.
        model (NAME): Another model of the runtime, such as openai:gpt-4o-mini.
        library (FILE): An artifact.
        part: Which tasks to ask.
        attempts: Tries at each task.
        temperature (NUMBER): Of sampling; 0 is greedy.
        as_json: Print JSON.
        changes (KEY=VALUE): Change a key of the configuration.

    Examples:
      agentkit-train evaluate examples/coevolve.yaml
      agentkit-train evaluate examples/coevolve.yaml --run runs/loans
      agentkit-train evaluate examples/coevolve.yaml --model openai:gpt-4o-mini --attempts 4
    """
    if run and model:
        raise UsageError("--run and --model both say who answers; give one")
    wanted = read_config(config, EvaluationConfig, changes=changes, ignores_rest=True)
    if run:
        found = trained_by(RunDirectory(run), wanted.policy)
    else:
        asked = resolve_model(model) if model else wanted.policy.model(wanted.policy.load())
        found = Trained(model=asked, library=None, tools=wanted.coevolution.tools)
    own = Path(wanted.library) if wanted.library else None
    report = evaluate_job(
        found.model,
        getattr(load_tasks_for_training(wanted.tasks), part),
        replace(wanted.asking.settings(), tools=found.tools),
        library=library_of(library or found.library or own),
        attempts=attempts,
        temperature=temperature,
        retriever=replace(wanted.coevolution, tools=found.tools).make_retriever(found.model),
        command=_command_line(),
    )
    if as_json:
        print_json(report.to_json())
    else:
        print_evaluation(report)


@command()
def export(run: Path, *, folder: _Folder) -> None:
    """Write what RUN has learned so far as the runtime takes it: adapter or weights, and library.

    A run that ended has its hand-over already, in 'handover'; this makes one from the newest
    checkpoint of a run that is under way.

    Args:
        folder (DIRECTORY): Where to write the hand-over.

    Examples:
      agentkit-train export runs/loans --output loans
    """
    if folder.resolve().is_relative_to((run / "checkpoints").resolve()):
        raise UsageError(f"{folder} lies among the checkpoints of the run; choose another folder")
    handed = export_job(run, folder)
    say(f"Wrote {handed.folder}.")
    show_handover(handed, RunDirectory(run))


@command()
def report(run: Path, *, output: Annotated[Path | None, option(type=_PAGE)] = None) -> None:
    """Draw the curves of RUN, the folder of a run, as one HTML page.

    A run that is under way, or was broken off, shows what there is.

    Args:
        output (FILE): Where to write it; report.html in RUN.

    Examples:
      agentkit-train report runs/loans
      agentkit-train report runs/loans --output loans.html
    """
    directory = RunDirectory(run)
    target = output or directory.path / REPORT
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(run_html(directory), encoding="utf-8")
    say(f"Wrote {target}")


@command()
def retriever(
    *,
    store_url: StoreUrl,
    tools: Annotated[Path | None, option(type=_OLD_FILE)] = None,
    requests: Annotated[Path | None, option(type=_OLD_FILE)] = None,
    output: Annotated[Path | None, option(type=click.Path(path_type=Path, dir_okay=False))] = None,
    promote: bool = False,
    as_json: AsJson,
) -> None:
    """Train the word vectors of retrieval on the requests of episodes that passed.

    A trial holds back some requests, and some tools altogether. Only when the whole retriever finds
    more of the held-back requests, and tools that learned nothing lose next to nothing, are the
    vectors trained on everything and written. No text of a request is in the file.

    Args:
        tools (FILE): JSON lines with a tool each, instead of a store's; with --requests.
        requests (FILE): JSON lines with "query" and "gold" (names of tools), instead of a store's
            episodes.
        output (FILE): The file.
        promote: Keep the file in the project, and have retrieval read it from now on where
            agentkit.toml says vectors = "promoted"; 'agentkit rollback --vectors' takes it back.
        as_json: Print JSON.

    Examples:
      agentkit-train retriever --promote
      agentkit-train retriever --output shop.vectors
      agentkit-train retriever --store sqlite:///s.db --requests asked.jsonl --output s.vectors
      agentkit-train retriever --tools tools.jsonl --requests asked.jsonl --output shop.vectors
    """
    if tools is not None and (requests is None or promote):
        raise UsageError(
            "--tools is no store: it needs --requests FILE, and goes without --promote"
        )
    if output is None and not promote:
        raise UsageError("where to? Give --output FILE, or --promote for the project's store")
    library, asked, source = _asked(store_url, tools, requests)
    found = train_retriever(library, asked, source=source, tell=say)
    if found.vectors is not None:
        _keep(found.vectors, output, store_url if promote else "")
    if as_json:
        print_json(found.to_json())
    else:
        show_recall(found)
    if found.vectors is None:
        raise click.exceptions.Exit(1)


def _keep(vectors: TrainedVectors, output: Path | None, store_url: str) -> None:
    """Write vectors where they are wanted, and promote them in a store, if one is given."""
    kept = vectors_file(vectors.digest)
    for file in filter(None, (output, kept if store_url else None)):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_vectors(vectors, file)
        say(f"Wrote {file} ({file.stat().st_size / 1e6:.1f} MB).")
    if store_url:
        with managed(store_url) as manager:
            figures = dict(vectors.figures)
            manager.promote_vectors(vectors.digest, figures=figures, author=person())
        say('Promoted: read where agentkit.toml says vectors = "promoted" in [retrieval].')
    else:
        say(f'Use it with Agent(retriever=default_retriever(vectors="{output}")).')


def _asked(
    store_url: str, tools: Path | None, requests: Path | None
) -> tuple[Library, tuple[Request, ...], str]:
    """The tools, what was asked, and where that is from."""
    if tools is not None and requests is not None:
        library, names = read_catalogue(tools)
        return library, read_requests(requests, names), requests.name
    with opened_to_read(store_url) as store:
        library = store.load()
        if requests is not None:
            names = {name: name for name in library.tools}
            return library, read_requests(requests, names), requests.name
        source = re.sub(r"(://[^/:@]*):[^/@]*@", r"\1:***@", store_url)  # without its password
        return library, requests_of(episodes_of(store)), source
