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
from autograder.vocabulary.report import ItemResult, Report, from_json
from autograder.vocabulary.text import visible

GOLDEN = places.GOLDEN / "policy_gradient"
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

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))

    def fits(self) -> bool:
        """Whether all of it fits a narrow window and a wide one."""
        self.unfold()
        for width in WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 800})
            if self.overflow() > 0:
                return False
        return True


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
        self.page.on("console", lambda line: self._note(line.text) if line.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self._note(str(error)))
        self.page.on("dialog", lambda dialog: (self._note("it opened a dialog"), dialog.dismiss()))
        self.page.on("popup", lambda popup: (self._note("it opened a window"), popup.close()))

    def _note(self, what: str) -> None:
        self.seen.complaints.append(what)

    def open(self, path: Path, width: int) -> Seen:
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
    changes = [Change(report.student, 80.0, report.points or 0.0) for report in reports[:20]]
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


def violations(browser: Any, text: str, path: Path, width: int, scheme: str) -> list[tuple[str, str]]:
    """What axe-core finds, everything folded and everything unfolded; its script is put in past the page's policy."""
    axe = pytest.importorskip("axe_playwright_python", reason="the package axe-playwright-python is not installed")
    path.write_text(text, encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(path.as_uri())
    page.evaluate((Path(axe.__path__[0]) / "axe.min.js").read_text(encoding="utf-8") + ";0")
    rows = []
    for _ in range(2):
        result = page.evaluate("axe.run()")
        assert len(result["passes"]) > 20
        rows += [(rule["id"], rule["nodes"][0]["html"]) for rule in result["violations"]]
        page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true })")
    context.close()
    return rows


# Students' pages


@pytest.mark.parametrize("student", in_short(SUBMISSIONS, 2))
def test_student_page_fits_any_window(visit: Callable[..., Seen], student: str) -> None:
    report = next(report for report in golden() if report.student == student)
    seen = visit(feedback_page(report, ["Found a zip."]))
    assert seen.page.inner_text("h1") == student
    assert seen.fits()


@pytest.mark.parametrize("text", in_short(["a run", *HOSTILE], 3))
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


@pytest.mark.parametrize("text", in_short(HOSTILE, 3))
def test_hostile_code_and_messages_are_text(visit: Callable[..., Seen], text: str) -> None:
    report, _ = of_emeka()
    source = f"def compute_deltas(rewards, mode):\n    # {text}\n    return {text!a}\n\n\n# {text}\n"
    seen = visit(with_code(report, source))
    assert seen.fits()
    assert seen.page.locator(ACTIVE).count() == 0
    assert visible(text, 200)[:60] in (seen.page.locator(".code").first.text_content() or "")
    told = visit(feedback_page(hostile(text), notes=[text]))
    assert told.fits()
    told.page.locator("article").first.hover()
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


@pytest.mark.parametrize("scheme", in_short(["light", "dark"]))
@pytest.mark.parametrize("width", in_short(WIDTHS))
@pytest.mark.parametrize("name", in_short(["emeka", "hana", "class"], 3))
def test_axe_finds_no_violation(browser: Any, tmp_path: Path, name: str, width: int, scheme: str) -> None:
    if name == "class":
        reports = a_class(12)
        final = {report.student: Final(report.points, (), report.max_points) for report in reports}
        answers = {report.student: {i.item: "11" for i in report.items if i.verdict == "failed"} for report in reports}
        known = Background(code_of=lambda student, function: f"def {function}():\n    return 0\n")
        text = index_page(reports, RUN, [Change("student-0001", 90.0, 1.0)], final, answers, known)
    else:
        report = next(report for report in golden() if report.student == name)
        text = with_code(report, of_emeka()[1])
    assert violations(browser, text, tmp_path / "page.html", width, scheme) == []


# The table of students


@pytest.mark.parametrize("size", in_short((1, 30, 1000), 2))
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
    page.locator(f"summary:has(code:text-is('{name}'))").click()
    page.locator(f"details:has(code:text-is('{name}')) a[data-mistake]").click()
    assert seen.names() == made
    for least, most in (("60", ""), ("55", "80"), ("90", "10")):
        page.click("#reset")
        page.fill("#least", least)
        page.fill("#most", most)
        low, high = float(least), float(most or "inf")
        assert seen.names() == who(lambda report, low=low, high=high: low <= (report.points or 0.0) <= high)


@pytest.mark.parametrize("width", WIDTHS)
def test_hostile_class_is_text(visit: Callable[..., Seen], width: int) -> None:
    seen = visit(dashboard([*map(hostile, HOSTILE)]), width)
    assert sorted(seen.names()) == sorted(visible(text, 120) for text in HOSTILE)
    for column in ("student", "points"):
        seen.head(column).click()
    seen.page.fill("#name", "<script>window")
    assert seen.names() == [visible(HOSTILE[0], 120)]
    if width > 640:
        seen.page.hover("#class tbody tr:not([hidden]) td.failed")
    assert seen.page.locator("img, iframe, body link, object, embed, body script:not(:last-child)").count() == 0
    assert seen.overflow() <= 0


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
    seen = visit(dashboard_of(30))
    address = seen.page.url
    fragments = ["students", "item=no-such-item&verdict=neither&group=none", "sort=nothing", "=&=&=="]
    for fragment in [*fragments, "least=x&sort=-&most=", "mistake=", "name=%E0%A4"]:
        seen.page.goto(f"{address}#{fragment}")
        seen.page.reload()
        assert len(seen.names()) == (0 if fragment.startswith("name") else 30)
    for text in HOSTILE:
        seen.page.goto(f"{address}#name={urllib.parse.quote(text.encode())}&sort=-points")
        seen.page.reload()
        assert seen.page.input_value("#name") == text
    assert seen.page.locator("img, iframe, body link, object, embed, body script:not(:last-child)").count() == 0


def test_large_class_lays_out_rows_as_one_scrolls(visit: Callable[..., Seen]) -> None:
    reports = [replace(report, items=report.items[:2]) for report in a_class(1)]
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
    "index": ("#name", "#class th button", "#class tbody a", ".items-list button"),
    "feedback": (".scores a", "summary", "pre"),
}


@pytest.mark.parametrize("scheme", in_short(["light", "dark"]))
@pytest.mark.parametrize("page", FOCUSED)
def test_focus_is_seen(visit: Callable[..., Seen], page: str, scheme: str) -> None:
    text = dashboard_of(1) if page == "index" else feedback_page(hostile("text"))
    shown = visit(text, color_scheme=scheme).page
    for target in FOCUSED[page]:
        reach(shown, target, 200)
        style = "(style => [style.outlineStyle, parseFloat(style.outlineWidth)])"
        assert shown.evaluate(f"{style}(getComputedStyle(document.activeElement))") == ["solid", 2]


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
SCREEN_ONLY = ("#controls", "#sorting", ".jump", ".look", ".ask")


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
    assert not [part for part in SCREEN_ONLY if seen.page.locator(part).first.is_visible()]
    if name != "student":
        assert seen.page.is_visible("#class")
        assert seen.page.eval_on_selector(".class-box", "box => getComputedStyle(box).overflow") == "visible"
