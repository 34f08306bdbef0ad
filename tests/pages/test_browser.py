"""Both pages in a real browser: nothing leaves, nothing runs that should not, everything works by mouse and keyboard.

The browser is the machine's own Chromium; where there is none these tests skip.
"""

from __future__ import annotations

import functools
import itertools
import json
import random
import re
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import places
import pytest
from chromium import chromium
from lengths import in_short
from sample_reports import index_page

from autograder.gradebook.final_grades import Final
from autograder.grading.remarks.details import Curve, Details, Picture, Series
from autograder.pages.class_page import ABSENT, NOT_GRADED, Background, Change
from autograder.pages.listing import listing_of
from autograder.pages.student_page import feedback_page
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import VERDICT_WORDS, ItemResult, Report, from_json
from autograder.vocabulary.text import visible

GOLDEN = places.GOLDEN / "policy_gradient"
SIZES = (1, 30, 1000)
WIDTHS = (360, 1300)
RUN = {"assignment": "policy_gradient", "started": "2031-03-02T14:05:11Z", "seconds": 93.2, "isolation": ["seccomp"]}
HOSTILE = (
    "<script>window.pwned = 1; alert(1)</script>",
    "<img src=x onerror='window.pwned = 1; alert(1)'>",
    '<svg/onload=alert(1)><a href="javascript:window.pwned=1">x</a>',
    "\"' onmouseover='window.pwned=1' onfocus=alert(1) autofocus x=\"",
    "</style></title></pre></script><iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<meta http-equiv=refresh content='0;url=http://example.org/'>",
    "<link rel=stylesheet href=http://example.org/x.css>",
    "\u202egnp.exe\u2066 \u200bunseen",
    "x" * 300,
    "W" * 300 + "<b>",
    "{{ 7 * 7 }} ${7 * 7}",
    "../../etc/passwd?#%2e",
)


@dataclass
class Seen:
    """A page of the browser, and what it did that nobody should see."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def names(self) -> list[str]:
        """The students of the table that are shown, in order."""
        script = "rows => rows.filter(row => !row.hidden).map(row => row.cells[0].textContent.trim())"
        return list(self.page.eval_on_selector_all("#class tbody tr", script))

    def column(self, number: int) -> list[str]:
        """The cells that are shown in that column, from 0."""
        script = "(rows, number) => rows.filter(row => !row.hidden).map(row => row.cells[number].textContent.trim())"
        return list(self.page.eval_on_selector_all("#class tbody tr", script, number))

    def heads(self) -> list[str]:
        """What stands at the top of the table's columns."""
        return list(self.page.eval_on_selector_all("#class thead th", "heads => heads.map(head => head.textContent)"))

    def head(self, text: str) -> Any:
        """The button that sorts the table by that column."""
        return self.page.locator("#class thead button").nth(self.heads().index(text))

    def unfold(self) -> None:
        """Show all that is folded."""
        self.page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true })")

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


class Tab:
    """A tab of the browser, used by one test after the other: a new one costs three times what a page does."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.seen = Seen(None)
        context = browser.new_context(**options)
        context.on("request", lambda request: self.seen.requests.append(request.url))
        context.route(re.compile("^(?!file:|data:|about:)"), lambda route: route.abort())
        self.page = context.new_page()
        self.page.on("console", lambda line: self._said(line.text) if line.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self._said(str(error)))
        self.page.on("dialog", lambda dialog: (self._said("it opened a dialog"), dialog.dismiss()))
        self.page.on("popup", lambda popup: (self._said("it opened a window"), popup.close()))

    def _said(self, what: str) -> None:
        self.seen.complaints.append(what)

    def open(self, path: Path, width: int) -> Seen:
        """What the page in that file is seen to do from now on, in a window of that width."""
        self.page.goto("about:blank")
        self.page.emulate_media(media="null")
        self.page.set_viewport_size({"width": width, "height": 800})
        self.seen = Seen(self.page)
        self.page.goto(path.as_uri())
        return self.seen


@pytest.fixture(scope="module")
def tabs() -> dict[object, Tab]:
    """The tabs that are open, by how many a test has had before it and by what they emulate."""
    return {}


@pytest.fixture
def visit(browser: Any, tabs: dict[object, Tab], tmp_path: Path) -> Iterator[Callable[..., Seen]]:
    """A function that opens a page from a file, with no network; it holds at the end that the page kept quiet."""
    opened: list[tuple[Seen, str]] = []

    def open_page(text: str, width: int = 1300, **options: Any) -> Seen:
        path = tmp_path / f"page{len(opened)}.html"
        path.write_text(text, encoding="utf-8")
        kind = (len(opened), *sorted(options.items()))
        tab = tabs.setdefault(kind, tabs.get(kind) or Tab(browser, **options))
        seen = tab.open(path, width)
        opened.append((seen, path.as_uri()))
        return seen

    yield open_page
    for seen, address in opened:
        assert seen.page.evaluate("window.pwned") is None
        assert seen.page.url.partition("#")[0] == address
        assert [url for url in seen.requests if url != address and not url.startswith("data:")] == []
        assert seen.complaints == []


@functools.cache
def golden(folder: Path = GOLDEN) -> list[Report]:
    return [from_json(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.json"))]


SUBMISSIONS = sorted((report.student for report in golden()), key=lambda name: name not in ("emeka", "hana"))


@functools.cache
def a_class(size: int) -> list[Report]:
    """Students who share the answers of the sample class among them, some of them stronger than others."""
    samples = golden()
    chance = random.Random(size)
    return [_student(samples, f"student-{place:04}", chance) for place in range(size)]


def _student(samples: list[Report], name: str, chance: random.Random) -> Report:
    best, strength = samples[0].items, chance.random()
    items = (
        best[place] if chance.random() < strength else chance.choice(samples).items[place] for place in range(len(best))
    )
    return replace(samples[0], student=name, items=tuple(replace(item, seconds=chance.random()) for item in items))


def dashboard(reports: list[Report]) -> str:
    slow = replace(reports[-1], items=(replace(reports[-1].items[0], seconds=99.0), *reports[-1].items[1:]))
    reports = [*reports[:-1], slow]
    changes = [Change(one.student, 40.0, one.points or 0.0) for one in reports[:20]]
    others = [Change("gone", 1.0, ABSENT), Change(reports[0].student, NOT_GRADED, 1.0)]
    return index_page(reports, RUN, [*changes, *others])


@functools.cache
def dashboard_of(size: int) -> str:
    return dashboard(a_class(size))


def hostile(text: str) -> Report:
    """A report with `text` wherever a student, a file or a traceback could put it."""
    sample = next(report for report in golden() if report.student == "emeka")
    items = tuple(_hostile(item, text) for item in sample.items)
    return replace(sample, student=text, submission=replace(sample.submission, path=text), items=items)


def _hostile(item: ItemResult, text: str) -> ItemResult:
    cases = tuple(replace(case, message=text) for case in item.cases)
    return replace(item, title=text, message=text, hint=text, verdict="failed", mistakes=(text,), cases=cases)


def shown(report: Report, text: str = "a run", cells: str = "..+-!+" * 20) -> Details:
    """Curves that meet the reference, run away and break off; a picture of every shape beside an item of its own."""
    steps = [2.3 + step / 60 for step in range(80)]
    wild = tuple(None if step % 20 == 7 else value * 10 ** (step // 10) for step, value in enumerate(steps))
    series = (Series(f"mean {text}", tuple(steps), tuple(steps)), Series(text, wild, tuple(steps)))
    sizes = ((120,), (3, 40), (4, 5, 6))
    names = [item.item for item in report.items]
    axes = ("box", text, "pos")
    sized = zip(names, sizes, strict=False)
    pictures = [Picture(name, "c", text, axes[3 - len(size) :], size, cells) for name, size in sized]
    return Details("", "", (Curve("one", text, "", series), Curve("two", text, text, ())), tuple(pictures))


# Every size and width


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("size", in_short(SIZES, 2))
def test_a_class_of_any_size_fits_the_window(visit: Callable[..., Seen], size: int, width: int) -> None:
    seen = visit(dashboard_of(size), width)
    assert len(seen.names()) == size
    assert seen.overflow() <= 0


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("student", in_short(SUBMISSIONS, 2))
def test_feedback_on_any_submission_fits_the_window(visit: Callable[..., Seen], student: str, width: int) -> None:
    report = next(one for one in golden() if one.student == student)
    seen = visit(feedback_page(report, ["Found a zip."]), width)
    assert seen.page.inner_text("h1") == student
    seen.unfold()
    assert seen.overflow() <= 0


@pytest.mark.parametrize("width", WIDTHS)
def test_curves_and_pictures_fit_the_window_and_are_told_in_words(visit: Callable[..., Seen], width: int) -> None:
    report = golden()[4]
    seen = visit(feedback_page(report, (), shown(report)), width)
    seen.unfold()
    assert seen.overflow() <= 0
    drawn = seen.page.get_by_role("img")
    assert drawn.count() == 5
    assert all("of 120 values" in drawn.nth(place).get_attribute("aria-label") for place in range(3))
    assert all("goes from 2.3 to" in drawn.nth(place).get_attribute("aria-label") for place in (3, 4))
    outside = """svg => { const box = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('*')].filter(part => {
        const own = part.getBoundingClientRect();
        return own.left < box.left - 4 || own.right > box.right + 4 || own.bottom > box.bottom + 4;
    }).length }"""
    assert [drawn.nth(place).evaluate(outside) for place in range(5)] == [0] * 5


# Sorting


@pytest.mark.parametrize("size", in_short(SIZES, 2))
def test_students_are_sorted_by_name_and_by_points(visit: Callable[..., Seen], size: int) -> None:
    reports = a_class(size)
    seen = visit(dashboard_of(size))
    names = [report.student for report in reports]
    head = seen.page.locator("#class thead button")
    assert seen.names() == names
    head.nth(0).click()
    assert seen.names() == names[::-1]
    head.nth(1).click()
    points = [float(cell) for cell in seen.column(1)]
    assert points == sorted(report.points or 0.0 for report in reports)
    head.nth(1).click()
    assert [float(cell) for cell in seen.column(1)] == points[::-1]
    assert seen.page.get_attribute("#class th:nth-child(2)", "aria-sort") == "descending"
    assert seen.page.get_attribute("#class th:nth-child(1)", "aria-sort") == "none"


def test_who_was_not_graded_stands_below_a_zero(visit: Callable[..., Seen]) -> None:
    best, other = a_class(2)
    zero = tuple(replace(item, points=0.0, verdict="failed") for item in other.items)
    lost = (replace(zero[0], points=None, verdict="not_graded"), *zero[1:])
    reports = [best, replace(other, student="lost", items=lost), replace(other, student="zero", items=zero)]
    seen = visit(dashboard(reports))
    seen.page.locator("#class thead button").nth(1).click()
    assert seen.names() == ["lost", "zero", best.student]
    seen.head("reward-values").click()
    assert seen.names()[0] == "lost"


# A student's code


def with_code(report: Report, source: str) -> str:
    """The page of a report on that text, shown beside it."""
    submission = Submission(report.student, "ada/policy_gradient.py", "0" * 64, source)
    functions = list(dict.fromkeys(item.function for item in report.items))
    listing = listing_of(submission, report, functions, "def compute_deltas(rewards, mode):\n    pass\n")
    return feedback_page(report, (), shown(report), listing)


@functools.cache
def of_emeka() -> tuple[Report, str]:
    report = next(one for one in golden() if one.student == "emeka")
    path = places.KIT / "fixtures" / "policy_gradient" / "submissions" / "emeka" / "policy_gradient.py"
    return report, path.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", in_short(HOSTILE, 3))
def test_hostile_code_is_text_and_fits_a_phone(visit: Callable[..., Seen], text: str) -> None:
    report, _ = of_emeka()
    source = f"def compute_deltas(rewards, mode):\n    # {text}\n    return {text!a}\n\n\n# {text}\n"
    seen = visit(with_code(report, source), 360)
    seen.unfold()
    assert seen.page.locator("script, img, iframe, body link, object, embed, svg [onload]").count() == 0
    shown_code = seen.page.locator(".code").first.text_content() or ""
    assert visible(text, 200)[:60] in shown_code
    assert seen.overflow() <= 0


def test_an_item_leads_to_its_line_and_the_line_back_to_the_item(visit: Callable[..., Seen]) -> None:
    page = visit(with_code(*of_emeka())).page
    page.locator("#item-deltas-normalized .at a").click()
    line = page.locator(".code .bad:target")
    assert line.count() == 1
    assert page.evaluate("document.querySelector('.bad:target').getBoundingClientRect().top >= 0")
    line.locator("xpath=following-sibling::*[1]").locator("a").first.click()
    assert page.evaluate("document.querySelector(':target').matches('article.item')")


@pytest.mark.parametrize("scheme", in_short(["light", "dark"]))
@pytest.mark.parametrize("width", in_short(WIDTHS))
@pytest.mark.parametrize("name", in_short(["hana", "emeka"]))
def test_assistive_technology_finds_no_fault_with_a_students_page(
    browser: Any, name: str, width: int, scheme: str
) -> None:
    """By axe-core, everything folded and everything unfolded; its script is put in past the page's policy."""
    axe = pytest.importorskip("axe_playwright_python", reason="the package axe-playwright-python is not installed")
    rules = (Path(axe.__path__[0]) / "axe.min.js").read_text(encoding="utf-8")
    report = next(one for one in golden() if one.student == name)
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.set_content(with_code(report, of_emeka()[1]))
    for _ in range(2):
        page.evaluate(rules)
        found = page.evaluate("axe.run()")
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        assert len(found["passes"]) > 30
        assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
    context.close()


# Filtering


def test_a_name_filters_by_any_part_without_case_or_accents(visit: Callable[..., Seen]) -> None:
    names = ["Émile Borel", "Emilia", "ada", "Nguyễn"]
    seen = visit(dashboard([replace(report, student=name) for report, name in zip(a_class(4), names, strict=True)]))
    seen.page.fill("#name", "EMIL")
    assert seen.names() == ["Emilia", "Émile Borel"]
    assert "2 of 4 students shown." in seen.page.inner_text("#sorting")
    seen.page.fill("#name", "nguyen")
    assert seen.names() == ["Nguyễn"]
    seen.page.click("#reset")
    assert len(seen.names()) == 4


@pytest.mark.parametrize("size", in_short(SIZES, 2))
def test_an_item_filters_those_who_have_not_passed_it(visit: Callable[..., Seen], size: int) -> None:
    reports = a_class(size)
    item = reports[0].items[10].item
    seen = visit(dashboard_of(size))
    seen.page.select_option("#item", label=item)
    assert seen.page.input_value("#verdict") == "open"
    assert seen.names() == [report.student for report in reports if report.items[10].verdict != "passed"]
    assert seen.page.inner_text("th.picked") == item


@pytest.mark.parametrize("verdict", in_short(["passed", "failed", "raised", "missing", "crashed"], 2))
def test_a_verdict_filters_with_and_without_an_item(visit: Callable[..., Seen], verdict: str) -> None:
    reports = a_class(30)
    seen = visit(dashboard_of(30))
    seen.page.select_option("#verdict", verdict)
    any_item = [report.student for report in reports if verdict in [item.verdict for item in report.items]]
    assert seen.names() == any_item
    seen.page.select_option("#item", "4")
    assert seen.names() == [report.student for report in reports if report.items[4].verdict == verdict]


# Hostile text; that nothing ran and nothing was asked for is held by `visit`


@pytest.mark.parametrize("text", in_short(HOSTILE, 3))
def test_hostile_feedback_is_text_and_fits_a_phone(visit: Callable[..., Seen], text: str) -> None:
    seen = visit(feedback_page(hostile(text), notes=[text]), 360)
    seen.unfold()
    seen.page.locator("article").first.hover()
    assert seen.page.text_content("h1") == visible(text, 120)
    assert (seen.page.text_content("article pre") or "").strip() == visible(text, newlines=True)
    assert seen.page.locator("script, img, iframe, body link, object, embed, svg").count() == 0
    assert seen.overflow() <= 0


@pytest.mark.parametrize("text", in_short(HOSTILE, 3))
def test_hostile_words_of_curves_and_pictures_are_text(visit: Callable[..., Seen], text: str) -> None:
    report = golden()[4]
    seen = visit(feedback_page(report, (), shown(report, text)), 360)
    assert seen.page.locator("script, img, iframe, body link, object, embed, svg [onload]").count() == 0
    assert seen.page.locator("figure").count() == 5
    assert seen.overflow() <= 0


@pytest.mark.parametrize("width", WIDTHS)
def test_a_hostile_class_is_text(visit: Callable[..., Seen], width: int) -> None:
    seen = visit(dashboard([*map(hostile, HOSTILE)]), width)
    assert sorted(seen.names()) == sorted(visible(text, 120) for text in HOSTILE)
    for control in (0, 1, 3):
        seen.page.locator("#class thead button").nth(control).click()
    seen.page.fill("#name", "<script>window")
    assert seen.names() == [visible(HOSTILE[0], 120)]
    seen.page.hover("#class tbody tr:not([hidden]) td.failed")
    assert seen.page.locator("img, iframe, body link, object, embed, body script:not(:last-child)").count() == 0
    assert seen.overflow() <= 0


def test_a_cell_that_did_not_pass_leads_to_its_item_on_the_students_page(visit: Callable[..., Seen]) -> None:
    reports = a_class(30)
    seen = visit(dashboard_of(30))
    script = "links => links.map(link => [link.href.split('/').slice(-1)[0], link.textContent])"
    links = seen.page.eval_on_selector_all("#class tbody td a", script)
    open_ = [(one.student, item) for one in reports for item in one.items if item.verdict != "passed"]
    assert [href for href, _ in links] == [f"{student}.html#item-{item.item}" for student, item in open_]
    assert [text.split(",")[0] for _, text in links] == [VERDICT_WORDS[item.verdict] for _, item in open_]
    ids = re.findall(r'id="(item-[^"]*)"', feedback_page(reports[0]))
    assert {f"item-{item.item}" for item in reports[0].items if item.verdict != "passed"} <= set(ids)
    cell = seen.page.locator("#class tbody td a").first
    covers = """link => { const own = link.getBoundingClientRect(), cell = link.parentElement.getBoundingClientRect();
    return own.width >= cell.width - 2 && own.height >= cell.height - 2 }"""
    assert cell.evaluate(covers)


# The table at one glance


@pytest.mark.parametrize(("width", "finals"), [(1280, True), (1280, False), (390, True)])
def test_names_and_points_stay_in_sight_however_far_one_scrolls(
    visit: Callable[..., Seen], width: int, finals: bool
) -> None:
    reports = a_class(30)
    given = {one.student: Final(one.points, (), one.max_points) for one in reports} if finals else None
    page = visit(index_page(reports, RUN, None, given), width).page
    page.eval_on_selector(".class-box", "box => { box.scrollLeft = 9999; box.scrollTop = 9999 }")
    boxes = page.eval_on_selector_all(
        "#class tbody tr:last-child > :nth-child(-n+2)",
        "cells => cells.map(cell => { const own = cell.getBoundingClientRect(),"
        " box = cell.closest('.box').getBoundingClientRect(); return [own.left - box.left, own.right - box.left] })",
    )
    assert len(boxes) == 2
    assert all(left >= -1 and right <= min(width, 320) for left, right in boxes)
    assert all(before[1] <= after[0] + 1 for before, after in itertools.pairwise(boxes))
    script = "head => head.getBoundingClientRect().top - head.closest('.box').getBoundingClientRect().top"
    top = page.eval_on_selector("#class th", script)
    assert abs(top) <= 2


# The address


def test_what_is_chosen_stands_in_the_address_and_comes_back_from_it(visit: Callable[..., Seen]) -> None:
    seen = visit(dashboard_of(30))
    assert "#" not in seen.page.url
    seen.page.select_option("#item", label="deltas-max")
    seen.page.fill("#least", "40")
    seen.page.fill("#most", "95.5")
    seen.head("points").click()
    seen.head("points").click()
    names, address = seen.names(), seen.page.url
    assert address.partition("#")[2] == "item=deltas-max&verdict=open&least=40&most=95.5&sort=-points"
    assert 0 < len(names) < 30
    seen.page.reload()
    assert seen.names() == names
    assert seen.page.input_value("#most") == "95.5"
    assert seen.page.get_attribute("#class th:nth-child(2)", "aria-sort") == "descending"
    seen.page.click("#reset")
    assert seen.page.url.partition("#")[2] == "sort=-points"
    assert len(seen.names()) == 30


@pytest.mark.parametrize(
    "fragment",
    in_short(
        [
            "students",
            "item=no-such-item&verdict=neither",
            "sort=nothing",
            "name=%E0%A4",
            "=&=&==",
            "least=x&sort=-&most=",
            "mistake=",
        ],
        2,
    ),
)
def test_an_address_that_means_nothing_does_nothing(visit: Callable[..., Seen], fragment: str) -> None:
    seen = visit(dashboard_of(30))
    seen.page.goto(f"{seen.page.url}#{fragment}")
    seen.page.reload()
    assert len(seen.names()) == (0 if fragment.startswith("name") else 30)


def test_an_address_is_only_ever_text(visit: Callable[..., Seen]) -> None:
    seen = visit(dashboard_of(1))
    for text in HOSTILE:
        seen.page.goto(f"{seen.page.url.partition('#')[0]}#name={urllib.parse.quote(text.encode())}&sort=-points")
        seen.page.reload()
        assert seen.page.input_value("#name") == text
    assert seen.page.locator("img, iframe, body link, object, embed, body script:not(:last-child)").count() == 0


def test_a_mistake_filters_those_who_made_it(visit: Callable[..., Seen]) -> None:
    reports = a_class(30)
    made = {one.student: {name for item in one.items for name in item.mistakes} for one in reports}
    name = next(iter(next(names for names in made.values() if names)))
    seen = visit(dashboard_of(30))
    seen.page.select_option("#mistake", label=name)
    assert seen.names() == [student for student, names in made.items() if name in names]
    assert seen.page.url.endswith(f"#mistake={name}")
    seen.page.click("#reset")
    seen.page.locator(f"article:has(code:text-is('{name}')) a[data-mistake]").click()
    assert seen.names() == [student for student, names in made.items() if name in names]


@pytest.mark.parametrize(("least", "most"), in_short([("60", ""), ("", "60"), ("55", "80"), ("90", "10")]))
def test_a_range_of_points_filters(visit: Callable[..., Seen], least: str, most: str) -> None:
    seen = visit(dashboard_of(30))
    seen.page.fill("#least", least)
    seen.page.fill("#most", most)
    low, high = float(least or "-inf"), float(most or "inf")
    assert seen.names() == [one.student for one in a_class(30) if low <= (one.points or 0.0) <= high]


# A thousand students


def test_of_a_large_class_all_rows_are_shown_as_one_scrolls_or_at_once_and_all_are_printed(
    visit: Callable[..., Seen],
) -> None:
    reports = [replace(one, items=one.items[:2]) for one in a_class(1)]
    seen = visit(index_page([replace(reports[0], student=f"s{place:04}") for place in range(1000)], RUN))
    laid = "rows => rows.filter(row => getComputedStyle(row).display !== 'none').length"

    def count() -> int:
        return int(seen.page.eval_on_selector_all("#class tbody tr", laid))

    assert count() == 300
    assert len(seen.names()) == 1000
    seen.page.eval_on_selector(".class-box", "box => { box.scrollTop = box.scrollHeight }")
    seen.page.wait_for_function("document.querySelectorAll('#class .later').length === 400")
    assert count() == 600
    seen.page.emulate_media(media="print")
    assert count() == 1000
    seen.page.emulate_media(media="screen")
    seen.page.click("#more")
    assert count() == 1000
    assert not seen.page.is_visible("#more")
    seen.page.fill("#name", "s09")
    assert count() == 100


# Keyboard


def reach(page: Any, target: str, presses: int = 80) -> None:
    """Press Tab until the element that `target` selects has the focus."""
    for _ in range(presses):
        page.keyboard.press("Tab")
        if page.evaluate("target => document.activeElement.matches(target)", target):
            return
    pytest.fail(f"Tab does not reach {target}")


def test_the_keyboard_filters_and_sorts(visit: Callable[..., Seen]) -> None:
    seen = visit(dashboard_of(30))
    reach(seen.page, "#name")
    seen.page.keyboard.type("000")
    assert len(seen.names()) == 10
    reach(seen.page, "#item", 1)
    seen.page.keyboard.press("ArrowDown")
    assert seen.page.input_value("#item") == "0"
    reach(seen.page, "#verdict", 1)
    for control in ("#mistake", "#least", "#most", "#reset"):
        reach(seen.page, control, 1)
    seen.page.keyboard.press("Enter")
    assert len(seen.names()) == 30
    reach(seen.page, "#class th:nth-child(1) button")
    seen.page.keyboard.press("Space")
    assert seen.names()[0] == "student-0029"


def test_the_skip_link_is_first_and_jumps_to_the_students(visit: Callable[..., Seen]) -> None:
    page = visit(dashboard_of(1)).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the table of students"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    reach(page, "#name", 1)


@pytest.mark.parametrize("scheme", in_short(["light", "dark"]))
@pytest.mark.parametrize(
    ("page", "target"),
    in_short(
        [
            ("index", "#name"),
            ("index", "#class th button"),
            ("index", "#class tbody a"),
            ("index", ".items-list button"),
            ("feedback", ".scores a"),
            ("feedback", "pre"),
            ("feedback", "summary"),
        ],
        2,
    ),
)
def test_the_focus_is_seen(visit: Callable[..., Seen], page: str, target: str, scheme: str) -> None:
    text = dashboard_of(1) if page == "index" else feedback_page(hostile("text"))
    shown = visit(text, color_scheme=scheme).page
    reach(shown, target, 200)
    style = shown.evaluate(
        "(style => [style.outlineStyle, parseFloat(style.outlineWidth)])(getComputedStyle(document.activeElement))"
    )
    assert style == ["solid", 2]


# Colours and print


def test_print_leaves_out_what_cannot_be_used_on_paper(visit: Callable[..., Seen]) -> None:
    page = visit(dashboard_of(30), color_scheme="dark").page
    assert page.is_visible("#controls")
    page.emulate_media(media="print")
    for screen_only in ("#controls", "#sorting", ".jump"):
        assert not page.is_visible(screen_only)
    assert page.is_visible("#class")
    assert page.eval_on_selector(".class-box", "box => getComputedStyle(box).overflow") == "visible"
    assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()") == "#20242a"


# On a phone, in the dark, on paper

LOOKS = {
    "class": (lambda: dashboard_of(30), 1032),  # A4 across and upright, without margins, at 96 pixels an inch
    "the longest assignment": (lambda: index_page(golden(places.GOLDEN / "grpo_in_practice"), RUN), 1032),
    "student": (lambda: with_code(*of_emeka()), 700),
}
BRIGHTNESS = """(style => [style.backgroundColor, style.color].map(colour =>
    colour.match(/[0-9.]+/g).slice(0, 3).reduce((sum, part) => sum + +part, 0)))(getComputedStyle(document.body))"""
HIDDEN = "lists => lists.filter(list => list.scrollWidth > list.parentElement.clientWidth).length"
CUT_OFF = "parts => parts.filter(part => part.scrollWidth > part.clientWidth + 1).length"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", LOOKS)
def test_page_on_a_phone_and_on_paper(visit: Callable[..., Seen], name: str, scheme: str) -> None:
    make, paper = LOOKS[name]
    seen = visit(make(), 360, color_scheme=scheme)
    seen.unfold()
    assert seen.overflow() <= 0
    assert seen.page.eval_on_selector_all(".box > .list", HIDDEN) == 0
    background, ink = seen.page.evaluate(BRIGHTNESS)
    assert (background > ink) == (scheme == "light")
    seen.page.emulate_media(media="print")
    seen.page.set_viewport_size({"width": paper, "height": 800})
    assert seen.page.evaluate(BRIGHTNESS)[1] < 384  # ink on the white of the paper, whatever the screen's scheme
    assert seen.overflow() <= 0
    assert seen.page.eval_on_selector_all(".code", CUT_OFF) == 0
    assert not seen.page.locator(".ask").first.is_visible()


# What assistive technology is told


@pytest.mark.parametrize("scheme", in_short(["light", "dark"]))
@pytest.mark.parametrize("width", in_short([390, 1300]))
def test_axe_finds_nothing_against_the_class_page(browser: Any, tmp_path: Path, width: int, scheme: str) -> None:
    """On a page of its own without the policy, which refuses every script that is not the page's: axe-core's too."""
    axe = pytest.importorskip("axe_playwright_python", reason="the package axe-playwright-python is not installed")
    reports = a_class(12)
    final = {one.student: Final(one.points, (), one.max_points) for one in reports}
    answers = {one.student: {item.item: "11" for item in one.items if item.verdict == "failed"} for one in reports}
    known = Background(code_of=lambda student, function: f"def {function}():\n    return 0\n")
    (tmp_path / "class.html").write_text(index_page(reports, RUN, (), final, answers, known), encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto((tmp_path / "class.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true })")
    page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8") + ";0")
    found = page.evaluate("axe.run()")
    context.close()
    assert len(found["passes"]) > 20
    assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []


def test_a_cell_is_told_in_words_and_seen_as_a_sign(visit: Callable[..., Seen]) -> None:
    reports = a_class(1)
    page = visit(dashboard_of(1)).page
    cell = page.locator("#class tbody tr:first-child > :nth-child(4)")
    assert cell.text_content().startswith(VERDICT_WORDS[reports[0].items[0].verdict])
    assert cell.evaluate("cell => getComputedStyle(cell, '::before').content") != "none"
    assert cell.evaluate("cell => getComputedStyle(cell).fontSize") == "0px"
