"""Configurations: read into records, written out whole, mistakes named with their lines before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import pytest
from hypothesis import example, given, strategies as st

from agentkit.errors import UsageError
from agentkit_training import tiny_policy
from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.config.reading import parse_config, read_config, written_config


@dataclass(frozen=True, kw_only=True)
class Lora:
    rank: int = 16


@dataclass(frozen=True, kw_only=True)
class Source:
    name: str
    count: int | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    weights: str
    rate: float = 1e-4
    kind: Literal["lean", "trl"] = "lean"
    lora: Lora | None = None
    inner: Lora = field(default_factory=Lora)
    sources: tuple[Source, ...] = ()
    seeds: tuple[int, ...] = (1, 2)

    def __post_init__(self):
        if self.rate <= 0:
            raise ValueError(f"rate is {self.rate}; give a positive one")


WHOLE = """\
weights: tiny
rate: 0.5
lora:
  rank: 4
sources:
  - name: a
  - name: b
    count: 3
"""


def test_a_file_becomes_the_record(tmp_path):
    """Sections are records of their own, and what a file leaves out has its default."""
    path = tmp_path / "plan.yaml"
    path.write_text(WHOLE)
    wanted = Plan(
        weights="tiny",
        rate=0.5,
        lora=Lora(rank=4),
        sources=(Source(name="a"), Source(name="b", count=3)),
    )
    assert read_config(path, Plan) == wanted


plans = st.builds(
    Plan,
    weights=st.text(max_size=9),
    rate=st.floats(1e-9, 1e9),
    kind=st.sampled_from(["lean", "trl"]),
    lora=st.none() | st.builds(Lora, rank=st.integers()),
    sources=st.lists(st.builds(Source, name=st.text(max_size=9), count=st.integers())).map(tuple),
    seeds=st.lists(st.integers()).map(tuple),
)


@given(plan=plans)
@example(plan=Plan(weights="a\x85b", sources=(Source(name="\u2028\u2029 "),)))
def test_a_written_record_is_read_back(plan):
    """What is written out in full is the same configuration."""
    assert parse_config(written_config(plan), Plan) == plan


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("weights: tiny\nrat: 1\n", "line 2: rat is not known here"),
        ("weights: tiny\nlora:\n  rank: many\n", "line 3: lora.rank"),
        ("weights: tiny\nkind: fast\n", "line 2: kind"),
        ("rate: 1.0\n", "weights: Field required"),
        ("weights: tiny\nrate: -1\n", "rate is -1"),
        ("weights: tiny\nrate: 1.0\nweights: big\n", "line 3: weights is given in line 1 already"),
        ("lora:\n  rank: 1\n  rank: 2\nweights: tiny\n", "line 3: rank is given in line 2"),
        ("weights: &a [*a]\n", "weights"),
        ("- a\n", "holds a list"),
        ("a: [", "is not YAML"),
        ("rate: " + "9" * 5_000, "is not YAML: Exceeds the limit"),
    ],
)
def test_a_mistake_is_named_with_its_line(text, told):
    """Unknown keys, wrong types and wrong values say where they stand and what is wrong."""
    with pytest.raises(UsageError) as error:
        parse_config(text, Plan)
    assert told in str(error.value)


@pytest.mark.parametrize("text", ["a: [" + "1, " * 2_000_000 + "1]\n", "é" * 60_000])
def test_a_file_of_megabytes_is_no_configuration(text, tmp_path):
    """It is refused before YAML, which is slow, is read."""
    path = tmp_path / "run.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="more than 100,000 bytes, which is no configuration"):
        read_config(path, Plan)


def test_single_keys_are_changed_from_outside():
    """A change names a key by its sections, which need not be in the file."""
    plan = parse_config(WHOLE, Plan, changes=["rate=2e-5", "inner.rank=8", "lora=null"])
    assert plan.rate == pytest.approx(2e-5)
    assert plan.inner == Lora(rank=8)
    assert plan.lora is None


@pytest.mark.parametrize("change", ["rate", "=1", "rate.x=1", "rate=[1"])
def test_a_change_that_is_none_is_refused(change):
    """A change needs a key, a value, and sections that are sections."""
    with pytest.raises(UsageError, match=r"change|section|YAML"):
        parse_config(WHOLE, Plan, changes=[change])


def test_an_absent_file_is_named(tmp_path):
    """There being no file is said with its name."""
    with pytest.raises(UsageError, match=r"none\.yaml"):
        read_config(tmp_path / "none.yaml", Plan)


PLAIN = """\
policy:
  weights: tiny
tasks:
  source: hidden-constraints
"""


def read(*changes):
    """The configuration with some changes."""
    return parse_config(PLAIN, CoevolveConfig, changes=list(changes))


def test_one_temperature_is_sampled_and_trained_at():
    """Another one in the objective would train on probabilities that nothing was sampled by."""
    with pytest.raises(UsageError, match=r"coevolution.temperature is 0.7 and .* 1; give both"):
        read("coevolution.temperature=0.7")
    both = read("coevolution.temperature=0.7", "engine.objective.temperature=0.7")
    assert both.coevolution.temperature == both.engine.objective.temperature == 0.7
    assert read("coevolution.temperature=0.7", "frozen=true").frozen


def test_feedback_needs_a_model():
    """What a run would refuse when it begins is refused when the file is read."""
    with pytest.raises(UsageError, match="there is no model to ask"):
        read("coevolution.feedback=true")
    assert read("coevolution.feedback=true", "feedback_model=openai:gpt-4o-mini").feedback_model


def test_blocks_need_room_in_an_answer():
    """A call and a block that is cut off are malformed, so that writing one would be punished."""
    with pytest.raises(UsageError, match=r"policy\.answer_tokens is 48: .* give 160 or more"):
        read("coevolution.evolution=true", "policy.answer_tokens=48")
    assert read("coevolution.evolution=true", "policy.answer_tokens=160").coevolution.evolution


def test_off_is_a_mode_without_quotation_marks():
    """YAML's older meaning of off and on is left to fields that are true or false."""
    found = read("interface={cues: always, feedback: off}", "coevolution.evidence=on")
    assert (found.interface.feedback, found.coevolution.evidence) == ("off", True)


def test_logits_fill_the_device():
    """A fixed number would mean a pass for each sequence on a GPU; on a CPU the default stays."""
    assert read().engine.max_logits is None
    assert read().engine.make(tiny_policy()).max_logits == 1 << 24
    assert read("engine.max_logits=1000").engine.make(tiny_policy()).max_logits == 1000


def test_grpo_compares_attempts_at_a_task():
    """One attempt has nothing to be compared with; a frozen policy may make one."""
    with pytest.raises(UsageError, match=r"coevolution\.group_size is 1"):
        read("coevolution.group_size=1")
    assert read("coevolution.group_size=1", "frozen=true").frozen
    assert read("coevolution.group_size=1", "coevolution.steps=0").coevolution.steps == 0


def test_a_teacher_is_for_composites():
    """A model that nobody would ask is a mistake in the file."""
    with pytest.raises(UsageError, match=r"coevolution\.composites is off"):
        read("teacher=local:smollm2-135m")
    assert read("teacher=local:smollm2-135m", "coevolution.composites=true").teacher


def test_an_interface_that_is_asked_for_shows_what_the_profile_asks_for():
    """The switch is enough, as SEAL has it; before there is a profile nothing is shown."""
    interface = read("coevolution.interface=true").interface
    assert not interface.helps
    failing = replace(interface, labels=("argument_mismatch",))
    assert failing.has_cues
    assert replace(interface, labels=("recovery_failure",)).has_feedback


def test_an_interface_with_nothing_to_show_is_refused():
    """A switch that would change nothing is a mistake in the file."""
    with pytest.raises(UsageError, match="each part of the section interface is off"):
        read("coevolution.interface=true", "interface={}")
    assert read("coevolution.interface=true", "interface={cues: always}").interface.can_show


@pytest.mark.parametrize("change", ["iterations=2", "mini_batches=2", "max_logits=1000"])
def test_trl_is_not_told_what_lean_alone_does(change):
    """A key that the engine would pass by is named, in either direction."""
    with pytest.raises(UsageError, match=rf"engine\.name is trl, which has no {change[:8]}"):
        read("engine.name=trl", f"engine.{change}")
    assert read(f"engine.{change}").engine.name == "lean"
    with pytest.raises(UsageError, match=r"engine\.name is lean, which has no parts"):
        read("engine.parts=2")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("policy.answer_tokens", "0"),
        ("policy.batch_size", "0"),
        ("asking.max_steps", "0"),
        ("engine.max_tokens", "0"),
        ("engine.max_logits", "-1"),
        ("engine.iterations", "0"),
        ("engine.mini_batches", "0"),
        ("engine.parts", "0"),
        ("engine.optimizer.learning_rate", "-1.0"),
        ("engine.optimizer.learning_rate", ".nan"),
        ("engine.optimizer.learning_rate", ".inf"),
        ("engine.optimizer.weight_decay", "-0.1"),
        ("engine.optimizer.max_gradient_norm", "-1.0"),
        ("engine.optimizer.warmup_ratio", "1.5"),
        ("cold_start.optimizer.learning_rate", "-1.0"),
        ("coevolution.temperature", "-0.5"),
        ("coevolution.composite_coefficient", ".nan"),
    ],
)
def test_a_number_out_of_range_is_refused_when_the_file_is_read(key, value):
    """The message names key and value and what to give, before anything is loaded or measured."""
    name = key.partition("coevolution.")[2] or ".".join(key.split(".")[-2:])
    with pytest.raises(UsageError, match=rf"{name} is {value.removeprefix('.')}; give "):
        read(f"{key}={value}")
