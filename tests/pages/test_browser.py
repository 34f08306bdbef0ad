"""Pages in a real browser: nothing leaves, nothing runs that should not, everything works by mouse and keyboard.

The browser is the machine's own Chromium; where there is none these tests skip.
"""

from __future__ import annotations

import functools
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
from autograder.grading.details import Curve, Details, Picture, Series
from autograder.pages.class_page import ABSENT, NOT_GRADED, Background, Change
from autograder.pages.listing import listing_of
from autograder.pages.student_page import feedback_page
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import VERDICTS, Report, from_json
from autograder.vocabulary.text import visible

GOLDEN = places.GOLDEN / "policy_gradient"
WIDTHS = (360, 1300)
RUN = {"assignment": "policy_gradient", "started": "2031-03-02T14:05:11Z", "seconds": 93.2, "isolation": ["seccomp"]}
HOSTILE = (
    "<script>window.pwned = 1; alert(1)</script>",
    "<img src=x onerror='window.pwned = 1; alert(1)'>",
    "\"' onmouseover='window.pwned=1' onfocus=alert(1) autofocus x=\"",
    "</style></title></pre></script><iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<link rel=stylesheet href=http://example.org/x.css>",
    "\u202egnp.exe\u2066 \u200bunseen",
    "W" * 300 + "<b>",
    "../../etc/passwd?#%2e",
)
ACTIVE = "script, img, iframe, body link, object, embed, svg [onload]"


@dataclass
class Seen:
    """A page of the browser, and what it did that nobody should see."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def column(self, number: int) -> list[str]:
        """The cells that are shown in that column of the table of students, from 0."""
        script = "(rows, number) => rows.filter(row => !row.hidden).map(row => row.cells[number].textContent.trim())"
        return list(self.page.eval_on_selector_all("#class tbody tr", script, number))

    def names(self) -> list[str]:
        return self.column(0)

    def head(self, text: str) -> Any:
        """The button that sorts the table by that column."""
        heads = self.page.eval_on_selector_all("#class thead th", "heads => heads.map(head => head.textContent)")
        return self.page.locator("#class thead button").nth(heads.index(text))

    def unfold(self) -> None:
        self.page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true })")

    def fits(self, *widths: int) -> bool:
        """Whether all of it, unfolded, fits windows of these widths."""
        self.unfold()
        for width in widths or WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 800})
            if self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth") > 0:
                return False
        return True


@pytest.fixture(scope="module")
def tab() -> Iterator[Any]:
    """The one tab of the browser that all tests use: a new one costs three times what a page does."""
    with chromium() as browser:
        context = browser.new_context()
        context.route(re.compile("^(?!file:|data:|about:)"), lambda route: route.abort())
        yield context.new_page()


@pytest.fixture
def visit(tab: Any, tmp_path: Path) -> Iterator[Callable[..., Seen]]:
    """A function that opens a page from a file, with no network; it holds that the page kept quiet."""
    seen = Seen(tab)
    listeners: dict[str, Callable[[Any], object]] = {
        "request": lambda request: seen.requests.append(request.url),
        "console": lambda line: seen.complaints.append(line.text) if line.type in ("error", "warning") else None,
        "pageerror": lambda error: seen.complaints.append(str(error)),
        "dialog": lambda dialog: (seen.complaints.append("it opened a dialog"), dialog.dismiss()),
        "popup": lambda popup: (seen.complaints.append("it opened a window"), popup.close()),
    }
    path = tmp_path / "page.html"

    def kept_quiet() -> None:
        assert tab.evaluate("window.pwned") is None
        assert tab.url.partition("#")[0] == path.as_uri()
        assert [url for url in seen.requests if url != path.as_uri() and not url.startswith("data:")] == []
        assert seen.complaints == []

    def open_page(text: str, width: int = 1300, scheme: str = "light") -> Seen:
        if path.exists():
            kept_quiet()
        path.write_text(text, encoding="utf-8")
        tab.goto("about:blank")
        tab.emulate_media(media="screen", color_scheme=scheme)
        tab.set_viewport_size({"width": width, "height": 800})
        seen.requests.clear()
        tab.goto(path.as_uri())
        return seen

    for event, listener in listeners.items():
        tab.on(event, listener)
    yield open_page
    for event, listener in listeners.items():
        tab.remove_listener(event, listener)
    kept_quiet()


@functools.cache
def golden(folder: Path = GOLDEN) -> list[Report]:
    return [from_json(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.json"))]


@functools.cache
def a_class(size: int) -> list[Report]:
    """Students who share the answers of the sample class among them, some of them stronger than others."""
    samples, chance, students = golden(), random.Random(size), []
    for number in range(size):
        strength = chance.random()
        items = [
            best if chance.random() < strength else chance.choice(samples).items[place]
            for place, best in enumerate(samples[0].items)
        ]
        students.append(replace(samples[0], student=f"student-{number:04}", items=tuple(items)))
    return students


def dashboard(reports: list[Report]) -> str:
    changes = [Change(report.student, 80.0, report.points or 0.0) for report in reports[:20]]
    others = [Change("gone", 1.0, ABSENT), Change(reports[0].student, NOT_GRADED, 1.0)]
    return index_page(reports, RUN, [*changes, *others])


@functools.cache
def dashboard_of(size: int) -> str:
    return dashboard(a_class(size))


def hostile(text: str) -> Report:
    """A report with `text` wherever a student, a file or a traceback could put it."""
    sample = next(report for report in golden() if report.student == "emeka")
    told: dict[str, Any] = {"title": text, "message": text, "hint": text, "verdict": "failed", "mistakes": (text,)}
    items = [
        replace(item, **told, cases=tuple(replace(case, message=text) for case in item.cases)) for item in sample.items
    ]
    return replace(sample, student=text, submission=replace(sample.submission, path=text), items=tuple(items))


def drawn(report: Report, text: str) -> tuple[Report, Details]:
    """Curves that meet the reference, run away and break off; a picture of every shape, each at a cause of its own."""
    steps = [2.3 + step / 60 for step in range(80)]
    wild = tuple(None if step % 20 == 7 else value * 10 ** (step // 10) for step, value in enumerate(steps))
    series = (Series(f"mean {text}", tuple(steps), tuple(steps)), Series(text, wild, tuple(steps)))
    axes, sizes = ("box", text, "pos"), ((120,), (3, 40), (4, 5, 6))
    failed = [replace(item, verdict="failed", mistakes=(f"m{n}",)) for n, item in enumerate(report.items[:3])]
    pictures = [
        Picture(item.item, "c", text, axes[3 - len(size) :], size, "..+-!+" * 20)
        for item, size in zip(failed, sizes, strict=True)
    ]
    curves = Curve("one", text, "", series), Curve("two", text, text, ())
    return replace(report, items=(*failed, *report.items[3:])), Details("", "", curves, tuple(pictures))


@functools.cache
def of_emeka() -> tuple[Report, str]:
    report = next(report for report in golden() if report.student == "emeka")
    path = places.KIT / "fixtures" / "policy_gradient" / "submissions" / "emeka" / "policy_gradient.py"
    return report, path.read_text(encoding="utf-8")


def with_code(report: Report, source: str) -> str:
    """The page of a report on that text, shown beside it; one item tells a line of it."""
    told = "compute_deltas raised ValueError: no.\nLine 2 of your file:\n  x"
    items = tuple(replace(i, message=told, mistakes=()) if i.item == "deltas-normalized" else i for i in report.items)
    report = replace(report, items=items)
    submission = Submission(report.student, "ada/policy_gradient.py", "0" * 64, source)
    functions = list(dict.fromkeys(item.function for item in report.items))
    listing = listing_of(submission, report, functions)
    return feedback_page(report, (), None, listing)


AXE = "axe.run().then(found => found.violations.map(one => [one.id, one.nodes[0].html]))"


def violations(page: Any) -> list[list[str]]:
    """What axe-core finds on a page."""
    axe = pytest.importorskip("axe_playwright_python", reason="the package axe-playwright-python is not installed")
    page.evaluate((Path(axe.__path__[0]) / "axe.min.js").read_text(encoding="utf-8") + ";0")
    return list(page.evaluate(AXE))


# Students' pages


@pytest.mark.parametrize("student", ["emeka", "hana"])
def test_student_page_fits_any_window(visit: Callable[..., Seen], student: str) -> None:
    report = next(report for report in golden() if report.student == student)
    seen = visit(feedback_page(report, ["Found a zip."]))
    assert seen.page.inner_text("h1") == student
    assert seen.fits()


def test_functions_that_are_all_wrong_stand_on_a_screen_and_a_half(visit: Callable[..., Seen]) -> None:
    """24 of them in a window of 1440 by 900, with the card of where to start: its hint, line, values and call."""
    report, _ = of_emeka()
    wrong = next(item for item in report.items if item.item == "deltas-normalized")
    names = [f"function_{number}" for number in range(24)]
    submission = Submission("ada", "toy.py", "00", "".join(f"def {name}(x):\n    return x\n\n\n" for name in names))
    items = tuple(replace(wrong, item=name, function=name) for name in names)
    lines = {name: 4 * place + 2 for place, name in enumerate(names)}
    calls = {name: f"x = torch.tensor([3.0])\n{name}(x)" for name in names}
    report = replace(report, items=items)
    listing = listing_of(submission, report, names, lines)
    page = visit(feedback_page(report, (), Details("", "", calls=calls), listing), 1440).page
    assert "Start with function_0, line 2 of your file: " in page.inner_text(".next")
    assert page.locator(".card .code").first.is_visible()
    bottom = page.eval_on_selector(".scores", "table => table.getBoundingClientRect().bottom")
    assert bottom <= 1.5 * 900


@pytest.mark.parametrize("text", in_short(["a run", *HOSTILE], 2))
def test_drawings_fit_and_are_told_in_words(visit: Callable[..., Seen], text: str) -> None:
    report, details = drawn(golden()[4], text)
    seen = visit(feedback_page(report, (), details))
    assert seen.fits()
    assert seen.page.locator(ACTIVE).count() == 0
    images = seen.page.get_by_role("img")
    labels = [images.nth(place).get_attribute("aria-label") for place in range(images.count())]
    assert ["of 120 values" in label for label in labels] == [True] * 3 + [False] * 2
    assert all("goes from 2.3 to" in label for label in labels[3:])
    outside = """svg => { const box = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('*')].filter(part => {
        const own = part.getBoundingClientRect();
        return own.left < box.left - 4 || own.right > box.right + 4 || own.bottom > box.bottom + 4;
    }).length }"""
    if text == "a run":
        assert [images.nth(place).evaluate(outside) for place in range(5)] == [0] * 5


@pytest.mark.parametrize("text", in_short(HOSTILE, 2))
def test_hostile_code_and_messages_are_text(visit: Callable[..., Seen], text: str) -> None:
    report, _ = of_emeka()
    source = f"def compute_deltas(rewards, mode):\n    # {text}\n    return {text!a}\n\n\n# {text}\n"
    seen = visit(with_code(report, source))
    assert seen.fits()
    assert seen.page.locator(ACTIVE).count() == 0
    assert visible(text, 200)[:60] in (seen.page.locator(".code").first.text_content() or "")
    told = visit(feedback_page(hostile(text), notes=[text]))
    assert told.fits()
    assert told.page.text_content("h1") == visible(text, 120)
    assert (told.page.text_content("article pre") or "").strip() == visible(text, newlines=True)
    assert told.page.locator(f"{ACTIVE}, svg").count() == 0


def test_item_leads_to_its_line_and_back(visit: Callable[..., Seen]) -> None:
    page = visit(with_code(*of_emeka())).page
    page.locator("#item-deltas-normalized .at a").click()
    line = page.locator(".code .bad:target")
    assert line.count() == 1
    assert page.evaluate("document.querySelector('.bad:target').getBoundingClientRect().top >= 0")
    line.locator("xpath=following-sibling::*[1]").locator("a").first.click()
    assert page.evaluate("document.querySelector(':target').matches('article.item')")


def test_address_opens_the_row_that_an_item_stands_in(visit: Callable[..., Seen]) -> None:
    """The class page links to items; one that passed, or shares a cause, stands in a row that is folded."""
    report = next(report for report in golden() if report.student == "emeka")
    page = visit(feedback_page(report)).page
    for item in (report.items[0].item, "deltas-constant-group"):
        assert not page.is_visible(f"#item-{item}")
        page.evaluate("item => { location.hash = `item-${item}` }", item)
        assert page.is_visible(f"#item-{item}")


def class_with_everything() -> str:
    reports = a_class(2)
    final = {report.student: Final(report.points, (), report.max_points) for report in reports}
    answers = {report.student: {i.item: "11" for i in report.items if i.verdict == "failed"} for report in reports}
    known = Background(code_of=lambda student, function: f"def {function}():\n    return 0\n")
    return index_page(reports, RUN, [Change("student-0001", 90.0, 1.0)], final, answers, known)


@pytest.mark.parametrize("scheme", in_short(["light", "dark"]))
@pytest.mark.parametrize("width", in_short(WIDTHS))
@pytest.mark.parametrize("name", ["emeka", "class"])
def test_axe_finds_no_violation(visit: Callable[..., Seen], name: str, width: int, scheme: str) -> None:
    seen = visit(class_with_everything() if name == "class" else with_code(*of_emeka()), width, scheme)
    seen.unfold()
    assert violations(seen.page) == []


@pytest.mark.parametrize("where", ["class", "student"])
def test_verdicts_differ_by_a_sign_besides_colour(visit: Callable[..., Seen], where: str) -> None:
    sample = golden()[0]
    items = [replace(sample.items[n], verdict=verdict, points=0.0) for n, verdict in enumerate(VERDICTS)]
    report = replace(sample, items=(replace(sample.items[0], verdict="failed"), *items[1:]))
    if where == "class":
        page, cells = visit(index_page([report], RUN)).page, "#class tbody td:not(.n, .note)"
    else:
        cells = ".card > .item .verdict"
        page = visit(feedback_page(replace(report, items=tuple(replace(i, hint="?") for i in report.items)))).page
    signs = page.eval_on_selector_all(
        cells, "cells => cells.map(cell => [cell.className, getComputedStyle(cell, '::before').content])"
    )
    assert len(signs) > 6
    assert len({sign for _, sign in signs}) == len({name for name, _ in signs})
    assert all(sign not in ("none", "normal", '""') for _, sign in signs)


# The table of students


@pytest.mark.parametrize("size", in_short((30, 1, 500)))
def test_class_of_any_size_fits_and_sorts(visit: Callable[..., Seen], size: int) -> None:
    reports = a_class(size)
    seen = visit(dashboard_of(size))
    names = [report.student for report in reports]
    assert seen.names() == names
    seen.head("student").click()
    assert seen.names() == names[::-1]
    seen.head("points").click()
    points = [float(cell) for cell in seen.column(1)]
    assert points == sorted(report.points or 0.0 for report in reports)
    seen.head("points").click()
    assert [float(cell) for cell in seen.column(1)] == points[::-1]
    assert seen.page.get_attribute("#class th:nth-child(2)", "aria-sort") == "descending"
    assert seen.page.get_attribute("#class th:nth-child(1)", "aria-sort") == "none"
    assert seen.fits()


def test_name_filters_without_case_or_accents(visit: Callable[..., Seen]) -> None:
    names = ["Émile Borel", "Emilia", "ada", "Nguyễn"]
    seen = visit(dashboard([replace(report, student=name) for report, name in zip(a_class(4), names, strict=True)]))
    seen.page.fill("#name", "EMIL")
    assert seen.names() == ["Emilia", "Émile Borel"]
    assert "2 of 4 students shown." in seen.page.inner_text("#sorting")
    seen.page.fill("#name", "nguyen")
    assert seen.names() == ["Nguyễn"]
    seen.page.click("#reset")
    assert len(seen.names()) == 4


def test_filters_show_who_they_say(visit: Callable[..., Seen]) -> None:
    reports = a_class(30)
    seen = visit(dashboard_of(30))
    page = seen.page

    def who(keep: Callable[[Report], bool]) -> list[str]:
        return [report.student for report in reports if keep(report)]

    page.select_option("#item", label=reports[0].items[10].item)
    assert page.input_value("#verdict") == "open"
    assert seen.names() == who(lambda report: report.items[10].verdict != "passed")
    assert page.inner_text("th.picked") == reports[0].items[10].item
    page.click("#reset")
    for verdict in ("failed", "missing"):
        page.select_option("#verdict", verdict)
        assert seen.names() == who(lambda report, v=verdict: any(item.verdict == v for item in report.items))
        page.select_option("#item", "4")
        assert seen.names() == who(lambda report, v=verdict: report.items[4].verdict == v)
        page.click("#reset")
    name = next(name for report in reports for item in report.items for name in item.mistakes)
    made = who(lambda report: any(name in item.mistakes for item in report.items))
    page.select_option("#mistake", label=name)
    assert seen.names() == made
    assert page.url.endswith(f"#mistake={name}")
    page.click("#reset")
    page.locator("#mistakes").click()
    page.locator(f"summary:has(code:text-is('{name}'))").click()
    page.locator(f".mistakes-list details:has(code:text-is('{name}')) a[data-mistake]").click()
    assert seen.names() == made
    for least, most in (("60", ""), ("55", "80"), ("90", "10")):
        page.click("#reset")
        page.fill("#least", least)
        page.fill("#most", most)
        low, high = float(least), float(most or "inf")
        assert seen.names() == who(lambda report, low=low, high=high: low <= (report.points or 0.0) <= high)


def test_hostile_class_is_text(visit: Callable[..., Seen]) -> None:
    seen = visit(dashboard([*map(hostile, HOSTILE)]))
    assert sorted(seen.names()) == sorted(visible(text, 120) for text in HOSTILE)
    for column in ("student", "points"):
        seen.head(column).click()
    seen.page.hover("#class tbody tr:not([hidden]) td.failed")
    seen.page.fill("#name", "<script>window")
    assert seen.names() == [visible(HOSTILE[0], 120)]
    assert seen.page.locator("img, iframe, body link, object, embed, body script:not(:last-child)").count() == 0
    assert seen.fits()


# The address


def test_address_keeps_what_is_chosen(visit: Callable[..., Seen]) -> None:
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


def test_address_without_meaning_does_nothing_and_is_text(visit: Callable[..., Seen]) -> None:
    seen = visit(dashboard_of(3))
    address = seen.page.url
    fragments = ["students", "item=no-such-item&verdict=neither&group=none", "sort=nothing", "=&=&=="]
    for fragment in [*fragments, "least=x&sort=-&most=", "mistake=", "name=%E0%A4"]:
        seen.page.goto(f"{address}#{fragment}")
        assert len(seen.names()) == (0 if fragment.startswith("name") else 3)
    for text in HOSTILE[:4]:
        seen.page.goto(f"{address}#name={urllib.parse.quote(text.encode())}&sort=-points")
        seen.page.wait_for_function("text => document.getElementById('name').value === text", arg=text)
    seen.page.reload()
    assert seen.page.input_value("#name") == HOSTILE[3]
    assert seen.page.locator("img, iframe, body link, object, embed, body script:not(:last-child)").count() == 0


def test_large_class_lays_out_rows_as_one_scrolls(visit: Callable[..., Seen]) -> None:
    reports = [replace(report, items=report.items[:2]) for report in a_class(1)]
    seen = visit(index_page([replace(reports[0], student=f"s{place:04}") for place in range(700)], RUN))
    laid = "rows => rows.filter(row => getComputedStyle(row).display !== 'none').length"

    def count() -> int:
        return int(seen.page.eval_on_selector_all("#class tbody tr", laid))

    assert count() == 300
    assert len(seen.names()) == 700
    seen.page.eval_on_selector(".class-box", "box => { box.scrollTop = box.scrollHeight }")
    seen.page.wait_for_function("() => document.querySelectorAll('#class .later').length === 100")
    assert count() == 600
    seen.page.emulate_media(media="print")
    assert count() == 700
    seen.page.emulate_media(media="screen")
    seen.page.click("#more")
    assert count() == 700
    assert not seen.page.is_visible("#more")
    seen.page.fill("#name", "s06")
    assert count() == 100


# Keyboard


def reach(page: Any, target: str, presses: int = 80) -> None:
    """Press Tab until the element that `target` selects has the focus."""
    for _ in range(presses):
        page.keyboard.press("Tab")
        if page.evaluate("target => document.activeElement.matches(target)", target):
            return
    pytest.fail(f"Tab does not reach {target}")


def test_keyboard_skips_filters_and_sorts(visit: Callable[..., Seen]) -> None:
    seen = visit(dashboard_of(30))
    page = seen.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the table of students"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    reach(page, "#name", 1)
    page.keyboard.type("000")
    assert len(seen.names()) == 10
    reach(page, "#item", 1)
    page.keyboard.press("ArrowDown")
    assert page.input_value("#item") == "0"
    reach(page, "#verdict", 1)
    for control in ("#mistake", "#group", "#least", "#most", "#reset"):
        reach(page, control, 1)
    page.keyboard.press("Enter")
    assert len(seen.names()) == 30
    reach(page, "#class th:nth-child(1) button")
    page.keyboard.press("Space")
    assert seen.names()[0] == "student-0029"


FOCUSED = {
    "index": ("#name", "#class th button", "#class tbody a", "summary"),
    "feedback": (".scores a", "summary", "pre"),
}


@pytest.mark.parametrize("scheme", in_short(["light", "dark"]))
@pytest.mark.parametrize("page", FOCUSED)
def test_focus_is_seen(visit: Callable[..., Seen], page: str, scheme: str) -> None:
    text = dashboard_of(1) if page == "index" else feedback_page(hostile("text"))
    shown = visit(text, scheme=scheme).page
    shown.keyboard.press("Tab")  # from then on the browser shows where the focus is
    for target in FOCUSED[page]:
        shown.locator(target).first.focus()
        style = "(style => [style.outlineStyle, parseFloat(style.outlineWidth)])"
        assert shown.evaluate(f"{style}(getComputedStyle(document.activeElement))") == ["solid", 2]


# On a phone, in the dark, on paper

LOOKS = {
    "class": (lambda: dashboard_of(3), 1032),  # A4 across and upright, without margins, at 96 pixels an inch
    "student": (lambda: with_code(*of_emeka()), 700),
    "the longest assignment": (lambda: index_page(golden(places.GOLDEN / "grpo_in_practice"), RUN), 1032),
}
BRIGHTNESS = """(style => [style.backgroundColor, style.color].map(colour =>
    colour.match(/[0-9.]+/g).slice(0, 3).reduce((sum, part) => sum + +part, 0)))(getComputedStyle(document.body))"""
HIDDEN = "lists => lists.filter(list => list.scrollWidth > list.parentElement.clientWidth).length"
CUT_OFF = "parts => parts.filter(part => part.scrollWidth > part.clientWidth + 1).length"
SCREEN_ONLY = ("#controls", "#sorting", ".look")


@pytest.mark.parametrize("name", in_short(LOOKS, 2))
def test_page_on_a_phone_and_on_paper(visit: Callable[..., Seen], name: str) -> None:
    make, paper = LOOKS[name]
    seen = visit(make(), 360)
    page = seen.page
    assert seen.fits(360)
    assert page.eval_on_selector_all(".box > .list", HIDDEN) == 0
    for scheme in ("light", "dark"):
        page.emulate_media(media="screen", color_scheme=scheme)
        background, ink = page.evaluate(BRIGHTNESS)
        assert (background > ink) == (scheme == "light")
        page.emulate_media(media="print", color_scheme=scheme)
        assert page.evaluate(BRIGHTNESS)[1] < 384  # ink on the white of the paper, whatever the screen's scheme
    assert seen.fits(paper)
    assert page.eval_on_selector_all(".code", CUT_OFF) == 0
    assert not [part for part in SCREEN_ONLY if page.locator(part).first.is_visible()]
    if name != "student":
        assert page.is_visible("#class")
        assert page.eval_on_selector(".class-box", "box => getComputedStyle(box).overflow") == "visible"
