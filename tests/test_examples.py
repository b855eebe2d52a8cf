"""The notebook in ``examples/`` is valid, holds no outputs, and runs without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[1] / "examples" / "probesieve.ipynb"
nbformat = pytest.importorskip("nbformat", reason="needs the extra `dev`")


@pytest.fixture
def notebook() -> Any:
    found = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(found)
    return found


def test_no_output_is_stored(notebook: Any) -> None:
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert not [cell for cell in code if cell.outputs or cell.execution_count is not None]


@pytest.mark.filterwarnings("default")  # of the Jupyter client
def test_it_runs_and_shows_tables(notebook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="needs the extra `dev`")
    pytest.importorskip("ipykernel", reason="needs the extra `dev`")
    root = str(NOTEBOOK.parents[1])
    for name, value in {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": root}.items():
        monkeypatch.setenv(name, value)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = [output.data for cell in notebook.cells for output in cell.get("outputs", ()) if "data" in output]
    pages = [data["text/html"] for data in shown if "text/html" in data]
    assert any(">bias intensity of the model; lower is better</td>" in page for page in pages)
    assert any("<th>mean predictability</th>" in page for page in pages)
    kept = [
        output.text for cell in notebook.cells for output in cell.get("outputs", ()) if output.get("name") == "stdout"
    ]
    assert "without: " in kept[-1]
