"""A student in Jupyter, with nothing but the handout: the whole notebook in a kernel, and JupyterLab in a browser."""

from __future__ import annotations

import json
import re
import resource
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from all_assignments import handout_of
from nbgrader_course import NAME, cell, jupyter, read_notebook, run, solved, source
from places import KIT

from autograder.grading.assignment import find_assignment

pytestmark = pytest.mark.skipif(
    not find_spec("nbgrader"), reason="the extra nbgrader, which brings Jupyter, is not installed"
)

RUN = """async names => {
    const notebook = jupyterapp.shell.currentWidget.content;
    for (const name of names) {
        const index = notebook.widgets.findIndex(cell => cell.model.id === name);
        notebook.activeCellIndex = index;
        await notebook.scrollToItem(index, 'center');
        await jupyterapp.commands.execute('notebook:run-cell');
    }
}"""
TYPE = """([name, text]) => {
    const cells = jupyterapp.shell.currentWidget.content.widgets;
    cells.find(cell => cell.model.id === name).model.sharedModel.setSource(text);
}"""
IDLE = "() => window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"


@pytest.fixture
def student(tmp_path: Path) -> Path:
    """The handout, where nothing else of the kit is."""
    return handout_of(NAME, tmp_path / NAME)


@pytest.fixture
def page(student: Path) -> Iterator[Any]:
    """JupyterLab with the handout's notebook open and its kernel ready."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on this machine; on Debian: apt-get install chromium")
    with jupyter(student) as address, playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        page = browser.new_page(viewport={"width": 1300, "height": 1000})
        page.set_default_timeout(120_000)
        page.goto(f"{address}/lab/tree/{NAME}.ipynb?reset")
        page.wait_for_function(IDLE)
        yield page
        browser.close()


def shown(page: Any) -> str:
    """The output of the cell that ran last."""
    return str(page.inner_text(".jp-Cell.jp-mod-active .jp-Cell-outputArea"))


@pytest.mark.long
def test_solved_notebook_runs_in_under_a_minute(student: Path, tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    for name in ("solution", "handout"):
        shutil.copytree(KIT / name, kit / name)
    (student / f"{NAME}.ipynb").write_text(json.dumps(solved(kit)))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(student, "nbconvert", "--to", "notebook", "--execute", "--inplace", f"{NAME}.ipynb", kit=False)
    done = read_notebook(student / f"{NAME}.ipynb")
    for item in find_assignment(KIT, NAME).items:
        stream, value = cell(done, item.id)["outputs"]
        assert "".join(stream["text"]).startswith("PASS")
        assert float("".join(value["data"]["text/plain"])) == item.points
    for name, reward in (("rewards", 2.667), ("centered", 3.333), ("normalized", 3.333)):
        picture, text = cell(done, f"experiment-{name}")["outputs"]
        assert picture["data"]["image/png"]
        assert f"ends at {reward:.3f}" in "".join(text["text"])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 60  # whatever else the machine does


@pytest.mark.long  # in a kernel alone: the test above
def test_test_cell_shows_reason_then_points(page: Any) -> None:
    solution = read_notebook(find_assignment(KIT, NAME).solution / f"{NAME}.ipynb")
    right = source(cell(solution, "compute_deltas"))
    page.evaluate(RUN, ["imports", "compute_deltas", "deltas-centered"])
    assert re.search(r"0\.0\s+TODO  deltas-centered .* 0 / 3\n  compute_deltas is not implemented yet\.", shown(page))
    page.evaluate(TYPE, ["compute_deltas", right.replace("rewards.mean(dim=-1", "rewards.mean(dim=0")])
    page.evaluate(RUN, ["compute_deltas", "deltas-centered"])
    assert "5 of 5 values differ" in shown(page)
    assert "Which responses compete" in shown(page)
    page.evaluate(TYPE, ["compute_deltas", right])
    page.evaluate(RUN, ["compute_deltas", "deltas-centered"])
    assert re.search(r"PASS  deltas-centered .* 3 / 3\s+\[\d+\]:\s+3\.0", shown(page))
    page.get_by_role("button", name="Validate").first.click()
    dialog = page.locator(".jp-Dialog")
    dialog.wait_for()
    assert "TODO  reward-values" in dialog.inner_text()
    assert "compute_reward is not implemented yet." in dialog.inner_text()
    assert "deltas-centered" not in dialog.inner_text()
