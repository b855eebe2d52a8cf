"""What is said of a name that is neither a folder here nor a repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.errors import HubError
from builders.lookup import close_folder, no_folder_either


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "build" / "unqover-gender").mkdir(parents=True)
    (tmp_path / "build" / "unqover-gendre.txt").write_text("a file", encoding="utf-8")
    (tmp_path / "build" / ".unqover-gendre").mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("build/unqover-gendr", "; did you mean build/unqover-gender?"),
        ("./build/unqover-gendr", "; did you mean build/unqover-gender?"),
        ("bild/unqover-gender", "; did you mean build/unqover-gender?"),
        ("unqover-gendr", "; did you mean build/unqover-gender?"),
        ("build/other", ""),
        ("nowhere/else/unqover-gender", "; did you mean build/unqover-gender?"),
        ("nowhere/else/other", ""),
        ("", ""),
        ("build/\0", ""),
    ],
)
def test_a_folder_that_is_close_is_named(name: str, close: str) -> None:
    assert close_folder(name, Path("build")) == close
    assert close_folder(str(Path("build/unqover-gendr").absolute())).endswith("build/unqover-gender?")


def test_what_a_hub_does_not_have_is_no_folder_either() -> None:
    said = r"^no answer; there is no folder bild/unqover-gender here either; did you mean build/unqover-gender\?$"
    with pytest.raises(HubError, match=said), no_folder_either("bild/unqover-gender"):
        raise HubError("no answer")
    with pytest.raises(HubError, match=r"^org/set has no revision 'v9'; it has main$"), no_folder_either("org/set"):
        raise HubError("org/set has no revision 'v9'; it has main")
