from __future__ import annotations

import ast
import base64
import hashlib
import re
import textwrap
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from graded_folder import page_without_times as without_times
from graded_folder import without_times as report_without_times
from page_tree import Element, tree
from sample_reports import index_page
from toy_kit import toy_assignment

import autograder
from autograder.course.batch import grade_all
from autograder.gradebook.final_grades import Adjustment, Final
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.pages.class_page import ABSENT, NOT_GRADED, Background, Change
from autograder.pages.student_page import MAX_OPEN, Cause, feedback_page
from autograder.submissions.submission import Candidate
from autograder.vocabulary.report import NOT_REACHED, CaseResult, ItemResult, Report, SubmissionInfo, Verdict
from autograder.vocabulary.text import visible

TEMPLATES = Path(autograder.__file__).parent / "pages" / "templates"
TABLE = """\
deltas   float32[batch=3 trial=5]
5 of 15 values differ, all at batch 1 (allowed: 1e-5 relative)
  [batch trial]     yours   expected
  [1 0]               nan          0
  … 3 more"""
HOSTILE = [
    "<script>alert(1)</script>",
    "\"' onmouseover='alert(1)' x=\"",
    "javascript:alert(1)",
    "</pre></style></title></textarea><svg onload=alert(1)>",
    "{{7*7}} {% raw %} {# #}",
    "<!-- of this run alone --> -->",
    "a&amp;b &lt;",
    "x" * 300,
    "\u202egnp.exe\u2066",
    "two\nlines\r\nand\ttabs",
    "\x00\x1b[2J\ud800",
    "محمد بن موسى",
    " ",
]
RUN = {
    "assignment": "policy_gradient",
    "started": "2031-03-02T14:05:11Z",
    "seconds": 93.2,
    "versions": {"torch": "2.13.0", "python": "3.11.7"},
    "isolation": ["landlock", "seccomp"],
    "submissions": 3,
}


BEHIND = "b fails too: start there."


def item(
    name: str = "deltas-normalized",
    verdict: Verdict = "failed",
    points: float | None = 2.0,
    *,
    function: str = "compute_deltas",
    message: str = TABLE,
    hint: str = "What is its standard deviation?",
    mistakes: tuple[str, ...] = (),
    seconds: float = 0.25,
) -> ItemResult:
    cases = (
        CaseResult("constant-group", "public", verdict, message),
        CaseResult("tiny-spread", "hidden", "passed", ""),
    )
    title = f"title of {name}"
    return ItemResult(name, function, title, points, 6.0, verdict, mistakes, message, hint, seconds, cases)


def passed(name: str, function: str = "compute_reward") -> ItemResult:
    return item(name, "passed", 6.0, function=function, message="", hint="")


def report(student: str = "ada", *items: ItemResult) -> Report:
    info = SubmissionInfo(f"{student}/policy_gradient.py", "5a" * 32)
    chosen = items or (passed("reward-lists"), item(), item("loss-clipped", "raised", 0.0, function="compute_loss"))
    return Report(student, "policy_gradient", info, "f1" * 32, ("landlock", "seccomp"), chosen)


def faulty(student: str = "bob") -> Report:
    return report(student, passed("reward-lists"), item("run-exact", "not_graded", None, message="The sandbox failed."))


def said(element: Element) -> str:
    return " ".join(element.text.split())


def cells_of(row: Element) -> list[str]:
    return [cell.text.strip() for cell in row.children if isinstance(cell, Element)]


def section(page: str, name: str) -> Element:
    (found,) = tree(page).find("section", **{"aria-labelledby": name})
    return found


QUOTES = "'''"
BACKGROUND = Background(
    clauses={"population-std": "The standard deviation divides by G − 1."},
    code_of=lambda student, function: f"def {function}(rewards):\n    return {QUOTES}{student}\\n{QUOTES} < 0\n",
)


def pages_with(text: str) -> list[str]:
    """Both pages with `text` everywhere that a student, a file or a traceback could put it."""
    hostile = replace(item(message=text, hint=text, mistakes=(text,)), title=text)
    hostile = replace(hostile, cases=(CaseResult(text, "public", "failed", f"{text} again"),))
    name = text.encode(errors="replace").decode()  # a student's name is text that a file system can hold
    one = report(name, hostile, replace(hostile, item="other", verdict="not_graded", points=None))
    run = {**RUN, "assignment": text, "versions": {text: text}, "isolation": [text], "started": text}
    changes = [Change(name, 1.0, 2.0), Change(name, text, ABSENT)]
    final = Final(1.0, (Adjustment("override", "", 2.0, 1.0, text),), 2)
    known = Background({text: text}, lambda student, function: text, text)
    last = "\U0001d51eda"  # after all hostile names, and after a harmless one
    shared = {name: {"unnamed": "1"}, last: {"unnamed": "1"}}
    unnamed = replace(hostile, item="unnamed", mistakes=())
    two = [replace(one, items=(*one.items, unnamed)), report(last, *report().items, replace(item(), item="unnamed"))]
    return [feedback_page(one, notes=[text], title=text), index_page(two, run, changes, {name: final}, shared, known)]


UNSEEN = (CaseResult("one", "public", "passed", ""), CaseResult("two", "hidden", "failed", "wrong"))
CHANGES = (
    Change("ada", 3.0, 8.0),
    Change("bob", 12.5, NOT_GRADED),
    Change("cyd", 9.0, ABSENT),
    Change("dan", 7.0, 5.5),
)
BOTH = {"feedback": feedback_page(report(), ["Found a zip."]), "index": index_page([report(), faulty()], RUN, CHANGES)}
both_pages = pytest.mark.parametrize("page", BOTH.values(), ids=BOTH.keys())


# ---- safety


def _tags(root: Element) -> list[str]:
    """Every tag in order; a message of several lines may be several spans, so spans are left out."""
    return [element.tag for element in root.walk() if element.tag != "span"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_and_makes_nothing(text: str) -> None:
    pages, harmless = pages_with(text), [tree(page) for page in pages_with("harmless")]
    for page, root, plain in zip(pages, map(tree, pages), harmless, strict=True):
        assert _tags(root) == _tags(plain)
        for element in root.walk():
            assert not [name for name in element.attributes if name.startswith("on")]
            assert not {"src", "srcset", "action", "formaction", "xlink:href"} & set(element.attributes)
            assert re.match(r"#|feedback/|data:,$", element.attributes.get("href", "#"))
        unseen = r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
        assert not re.search(unseen, page)
    feedback, index = map(tree, pages)
    name = text.encode(errors="replace").decode()
    assert feedback.find("h1")[0].text == visible(name, 120)
    assert visible(text).strip() in feedback.find("h3")[0].text
    assert feedback.find("pre")[0].text == visible(text.strip("\n"), newlines=True) + "\n"
    assert feedback.find(class_="hint")[0].find("span")[0].text == visible(text, newlines=True)
    assert visible(name, 120) in [cell.text for cell in index.find("th", scope="row")]


def policy(page: str) -> dict[str, str]:
    (meta,) = tree(page).find("meta", **{"http-equiv": "Content-Security-Policy"})
    parts = (part.strip().partition(" ") for part in meta.attributes["content"].split(";"))
    return {name: rest for name, _, rest in parts}


@both_pages
def test_policy_refuses_what_the_page_does_not_hold(page: str) -> None:
    assert policy(page)["default-src"] == "'none'"
    assert policy(page)["img-src"] == "data:"
    assert set(policy(page)) <= {"default-src", "style-src", "script-src", "img-src", "base-uri", "form-action"}
    assert not [part for part in ("http:", "https:", "url(", "@import") if part in page]
    assert page.index("Content-Security-Policy") < min(page.index("<link"), page.index("<style"))


def test_index_runs_the_script_of_its_policy_and_students_none() -> None:
    (script,) = tree(BOTH["index"]).find("script")
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    assert policy(BOTH["index"])["script-src"] == f"'sha256-{digest}'"
    assert not tree(BOTH["feedback"]).find("script")
    assert "script-src" not in policy(BOTH["feedback"])


@both_pages
def test_page_is_well_formed_for_assistive_technology(page: str) -> None:
    root = tree(page)
    assert root.find("html")[0].attributes["lang"] == "en"
    assert "policy_gradient" in root.find("title")[0].text
    assert len(root.find("h1")) == len(root.find("main")) == 1
    elements = list(root.walk())
    levels = [int(element.tag[1]) for element in elements if re.fullmatch(r"h[1-6]", element.tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = [element.attributes["id"] for element in elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    assert all(element.attributes.get("scope") in ("col", "row") for element in elements if element.tag == "th")
    for element in elements:
        address = element.attributes.get("href", "")
        assert not address.startswith("#") or unquote(address[1:]) in ids
        assert set(element.attributes.get("aria-labelledby", "").split()) <= set(ids)


# ---- feedback


def test_total_and_one_row_for_each_function_stand_at_the_top() -> None:
    root = tree(BOTH["feedback"])
    assert root.find(class_="total")[0].text == "8 of 18 points"
    rows = root.find("table", class_="scores")[0].find("tbody")[0].find("tr")
    assert [row.find("th")[0].find("code")[0].text for row in rows] == [
        "compute_reward",
        "compute_deltas",
        "compute_loss",
    ]
    assert [[said(cell) for cell in row.find("td")[1:]] for row in rows] == [
        ["passed", "6 / 6"],
        ["1 to fix in compute_deltas", "2 / 6"],
        ["1 to fix in compute_loss", "0 / 6"],
    ]
    widths = [row.find("span", class_="bar")[0].find("span")[0].attributes["style"] for row in rows]
    assert widths == ["width:100.0%", "width:33.3%", "width:0.0%"]
    assert [one.attributes["id"] for one in rows[0].find("li")] == ["item-reward-lists"]


def test_failed_item_has_message_hint_and_command() -> None:
    card = tree(BOTH["feedback"]).find("article", id="item-deltas-normalized")[0]
    assert card.find("h3")[0].text == "title of deltas-normalized"
    assert card.find("pre")[0].text == TABLE + "\n"
    assert card.find(class_="hint")[0].text == "Hint What is its standard deviation?"
    assert card.find(class_="again")[0].text == "Again: python -m autograder check --item deltas-normalized"
    assert "2 / 6" in card.find(class_="head")[0].text


def test_items_of_one_cause_are_one_card_whose_others_open() -> None:
    both = [item(name, mistakes=("population-std",), hint="G or G - 1?") for name in ("a", "c")]
    root = tree(feedback_page(report("ada", both[0], item("b", function="g", hint="another"), both[1])))
    first, second = root.find("div", class_="card")
    assert [each.attributes["id"] for each in first.find("article")] == ["item-a", "item-c"]
    assert [each.attributes["id"] for each in first.find("details", class_="same")[0].find("article")] == ["item-c"]
    assert first.find("details", class_="same")[0].find("summary")[0].text == "One cause, 2 items: the others"
    assert not Cause((item("a"), item("c")), 2.0, at=7).is_one
    assert [hint.text for hint in first.find(class_="hint")] == ["Hint G or G - 1?"]
    assert [each.attributes["id"] for each in second.find("article")] == ["item-b"]


def test_items_that_one_cause_may_explain_are_one_card_in_whatever_function() -> None:
    behind = [replace(item(name, function=name, hint=BEHIND), points=0.0) for name in ("compute_deltas", "g")]
    named = item("d", mistakes=("population-std",), function="h")
    root = tree(feedback_page(report("ada", behind[0], item("b"), item("c"), behind[1], named)))
    first, second = root.find("div", class_="card")
    ids = ["item-b", "item-compute_deltas", "item-c", "item-g"]
    assert [each.attributes["id"] for each in first.find("article")] == ids
    assert first.find("details", class_="same")[0].find("summary")[0].text == "3 more items, perhaps of the same cause"
    assert [hint.text for hint in first.find(class_="hint")] == ["Hint What is its standard deviation?"]
    assert [each.attributes["id"] for each in second.find("article")] == ["item-d"]
    row = root.find("table", class_="scores")[0].find("tbody")[0].find("tr")[1]
    assert said(row.find("td")[1]) == "fix another first: compute_deltas"


def test_many_cards_open_in_the_row_of_their_function() -> None:
    several = [item(f"a{place}", function=f"f{place}") for place in range(MAX_OPEN + 1)]
    few, many = (
        tree(feedback_page(report("ada", *some))).find("details", class_="whole") for some in (several[1:], several)
    )
    assert few == []
    assert ["open" in row.attributes for row in many] == [True, *[False] * MAX_OPEN]  # where to start
    assert [len(row.find("article")) for row in many] == [1] * len(several)


def test_function_without_a_line_of_work_is_a_row() -> None:
    message = "f is not implemented yet."
    lost = [item(name, "missing", 0.0, function="f", message=message, hint="") for name in ("a", "b")]
    partly = item("c", "missing", 1.0, function="f", message=message, hint="")
    root = tree(feedback_page(report("ada", *lost, partly)))
    (row,) = root.find("table", class_="scores")[0].find("tbody")[0].find("tr")
    assert [each.attributes["id"] for each in row.find("li")] == ["item-a", "item-b"]
    assert [each.attributes["id"] for each in root.find("article")] == ["item-c"]
    (row,) = tree(feedback_page(report("ada", *lost))).find("tbody")[0].find("tr")
    assert row.find(class_="verdict")[0].text == "not implemented yet"


def test_items_that_nothing_reached_are_rows_below_their_cause() -> None:
    lost = [item(name, "raised", 0.0, function=name[0], message=f"{NOT_REACHED}: no import.") for name in ("f1", "f2")]
    root = tree(feedback_page(replace(report("ada", *lost, passed("g1", "g")), cause="It raised SyntaxError.")))
    assert root.find("section", class_="cause")[0].find("pre")[0].text.strip() == "It raised SyntaxError."
    rows = root.find("table", class_="scores")[0].find("tbody")[0].find("tr")
    assert [[each.attributes["id"] for each in row.find("li")] for row in rows] == [["item-f1", "item-f2"], ["item-g1"]]
    assert [row.find(class_="verdict")[0].text for row in rows] == ["not reached", "passed"]
    assert not root.find("article")
    assert root.find(class_="next")[0].text == "Next Start with the box below: 2 items were not reached because of it."


@pytest.mark.parametrize(
    ("items", "said", "worth"),
    [
        ([passed("a"), item("b", hint="Divide by G - 1. More.")], "Divide by G - 1.", "4 of your 4"),
        ([item("b", "missing", 0.0), item("c")], "it is not implemented yet.", "6 of your 10"),
        (
            [item("a", "missing", 0.0, hint=""), item("b", "missing", hint=""), item("c", "missing")],
            "a part of it is not implemented yet.",
            "14 of your 14",
        ),
        (
            [item("b", hint="", message="two shapes differ\n  [0 0]  1")],
            "title of b is not all right yet.",
            "4 of your 4",
        ),
        (
            [item("b", hint="", message="The first case is right. This one is not: two.\nIt is 1.")],
            "It is 1.",
            "4 of your 4",
        ),
        ([replace(item("b"), cases=UNSEEN)], "every public case passes, and a hidden one fails.", "4 of your 4"),
        (
            [replace(item("b", mistakes=("m",)), cases=UNSEEN)],
            "every public case passes, and a hidden one fails. What is its standard deviation?",
            "4 of your 4",
        ),
        (
            [replace(item("b"), cases=UNSEEN, counterexample="f(1)")],
            "every public case passes, and a hidden one fails. A call that goes wrong is shown with it.",
            "4 of your 4",
        ),
        ([replace(item("b"), cases=UNSEEN), item("c", hint="Seen. More.")], "Seen.", "up to 8 of your 8"),
        (
            [replace(item("b"), cases=UNSEEN), item("c", function="g", hint="Seen. More.")],
            "every public case passes, and a hidden one fails.",
            "4 of your 8",
        ),
        ([item("b"), item("c", function="g", hint=BEHIND)], "What is its standard deviation?", "up to 8 of your 8"),
    ],
    ids=(
        "hint",
        "missing",
        "missing in part",
        "message",
        "message of a later case",
        "hidden",
        "hidden and named",
        "hidden and shown",
        "seen first",
        "another's",
        "others behind it",
    ),
)
def test_one_sentence_says_what_to_start_with(items: list[ItemResult], said: str, worth: str) -> None:
    root = tree(feedback_page(report("ada", *items)))
    told = f"Next Start with compute_deltas: {said} This is worth {worth} missing points."
    assert root.find(class_="next")[0].text == told
    (link,) = root.find(class_="next")[0].find("a")
    assert [one for one in root.walk() if one.attributes.get("id") == link.attributes["href"][1:]]


def losing(name: str, lost: float, function: str, hint: str = "") -> ItemResult:
    return replace(item(name, function=function, hint=hint), points=20.0 - lost, max_points=20.0)


@pytest.mark.parametrize(
    ("items", "start"),
    [
        ([losing("a", 0.25, "f"), losing("b", 16.0, "g")], "b"),
        ([losing("a", 3.9, "f"), losing("b", 16.0, "g")], "b"),
        ([losing("a", 4.0, "f"), losing("b", 16.0, "g")], "a"),
        ([losing("a", 2.0, "f"), losing("a2", 2.0, "f"), losing("b", 16.0, "g")], "a"),
        ([losing("a", 0.25, "f"), losing("b", 5.0, "g"), losing("c", 16.0, "h")], "b"),
        ([losing("a", 0.25, "f"), losing("a2", 6.0, "f")], "a2"),
        ([replace(losing("a", 9.0, "f"), cases=UNSEEN), losing("a2", 0.25, "f")], "a2"),
        ([losing("a", 0.25, "f"), losing("b", 16.0, "g", "What is f? a fails too: start there.")], "a"),
    ],
    ids=(
        "a slip waits",
        "less than a quarter waits",
        "of comparable functions the first",
        "a function is worth what all its items are",
        "neither the first nor the greatest",
        "of one function's items likewise",
        "a public case before points",
        "a function that is called is mended first",
    ),
)
def test_next_is_worth_most_or_first_of_comparable(items: list[ItemResult], start: str) -> None:
    (told,) = tree(feedback_page(report("ada", *items))).find(class_="next")
    assert told.find("a")[0].attributes["href"] == f"#item-{start}"


def test_grader_fault_is_told_and_costs_nothing() -> None:
    root = tree(feedback_page(faulty()))
    assert root.find(class_="total")[0].text == "Not graded yet"
    assert "6 of 6 points on what could be graded so far" in root.text
    (box,) = root.find("section", class_="fault-box")
    assert "That is not your fault" in box.text
    (card,) = root.find("article", id="item-run-exact")
    assert "This item could not be graded. That is not your fault" in card.text
    assert "– / 6" in card.find(class_="head")[0].text


def test_no_mistake_is_named_to_a_student() -> None:
    assert "population-std" not in feedback_page(report("ada", item(mistakes=("population-std",))))


# ---- index


def students(page: str) -> list[Element]:
    return tree(page).find("table", id="class")[0].find("tbody")[0].find("tr")


def test_ungraded_submissions_come_first() -> None:
    page = BOTH["index"]
    (box,) = tree(page).find("section", class_="fault-box")
    assert "1 submission could not be graded" in said(box)
    assert [link.text for link in box.find("a")] == ["bob"]
    assert page.index('class="fault-box"') < page.index('class="histogram"')


def test_changes_since_last_run_begin_with_losses() -> None:
    changes = section(BOTH["index"], "changes")
    assert [cells_of(row) for row in changes.find("tr")[1:]] == [
        ["bob", "12.5", "not graded", "–"],
        ["cyd", "9", "not in the class", "–"],
        ["dan", "7", "5.5", "−1.5"],
        ["ada", "3", "8", "+5"],
    ]
    assert "1 up, 1 down, 2 came, went, or could not be graded." in said(changes)
    assert [link.text for link in changes.find("a")] == ["bob", "dan", "ada"]  # who is gone has no new page


def test_run_tells_what_differs_from_the_last_gradebook(kit: Path, tmp_path: Path) -> None:
    assignment = toy_assignment(kit)
    (tmp_path / "empty.py").write_text("")
    candidates = [Candidate(name, tmp_path / "empty.py", "empty.py") for name in ("=1+1", "ada", "bob")]
    grader = Grader.of(assignment, read_fixtures(assignment))

    def changes() -> list[list[str]]:
        grade_all(grader, candidates, tmp_path / "out")
        found = tree((tmp_path / "out" / "index.html").read_text()).find("table", class_="changes-list")
        return [cells_of(row) for table in found for row in table.find("tbody")[0].find("tr")]

    assert changes() == []
    left = "student,points,max_points,status\n'=1+1,excused,100,graded\nada,62.5,100,graded\ngone,100,100,graded\n"
    (tmp_path / "out" / "grades.csv").write_text(left)
    assert changes() == [
        ["=1+1", "excused", "0", "–"],
        ["bob", "not in the class", "0", "–"],
        ["gone", "100", "not in the class", "–"],
        ["ada", "62.5", "0", "−62.5"],
    ]


@pytest.mark.parametrize(
    ("reports", "run", "title"),
    [
        (
            [report()],
            {**RUN, "isolation": ["process"]},
            "Submissions ran below strict isolation, without landlock and seccomp",
        ),
        ([report(), replace(report("bob"), fixtures="00")], RUN, "Not everybody was graded on the same fixtures"),
    ],
)
def test_what_spoils_a_class_is_told(reports: list[Report], run: dict[str, object], title: str) -> None:
    assert [box.find("h2")[0].text for box in tree(index_page(reports, run)).find(class_="fault-box")] == [title]


def test_two_runs_differ_in_their_times_alone() -> None:
    timed = report("<!-- end of what is of this run alone -->"), faulty()
    later = {**RUN, "started": "2031-03-03T09:00:00Z", "seconds": 4000}
    first, second = index_page(timed, RUN), index_page([report_without_times(one) for one in timed], later)
    assert first != second
    assert feedback_page(timed[0]) == feedback_page(report_without_times(timed[0]))
    assert without_times(first) == without_times(second)
    tree(without_times(first))


# ---- the table of students


def heads(page: str) -> list[str]:
    return [head.text for head in tree(page).find("table", id="class")[0].find("th", scope="col")]


def test_row_tells_points_verdicts_and_what_stands_out() -> None:
    page = index_page([report()], RUN)
    (ada,) = students(page)
    assert dict(zip(heads(page), cells_of(ada), strict=True)) == {
        "student": "ada",
        "points": "8",
        "compute_reward": "6",
        "reward-lists": "passed",
        "compute_deltas": "2",
        "deltas-normalized": "partly, 2 of 6",
        "compute_loss": "0",
        "loss-clipped": "raised an error, 0 of 6",
        "what stands out": "raised an error",
    }
    assert [cell.attributes.get("data-p") for cell in ada.find("td", class_="failed")] == ["2"]


def test_final_grades_stand_beside_what_was_earned() -> None:
    excused = Final(None, (Adjustment("excused", "", 8.0, None, "excused from this assignment"),), 18)
    finals = {"ada": Final(7.5, (), 18), "bob": excused}
    page = index_page([report(), report("bob")], RUN, finals=finals)
    ada, bob = students(page)
    assert heads(page)[:3] == ["student", "final", "compute_reward"]
    assert cells_of(ada)[:2] == ["ada", "7.5, graded 8"]
    assert cells_of(bob)[:2] == ["bob", "–, excused"]
    (same,) = students(index_page([report()], RUN, finals={"ada": Final(8, (), 18)}))
    assert cells_of(same)[:2] == ["ada", "8"]
    facts = {fact.find("dt")[0].text: fact.find("dd")[0].text for fact in tree(page).find("dl")[0].find("div")}
    assert facts["mean final grade"] == "7.5 of 18"
    assert facts["student"] == "1"
    assert facts["excused"] == "1 count nowhere"
    assert [link.text for link in section(page, "faulty").find("a")] == ["ada"]


# ---- mistakes


def mistakes_of(page: str) -> list[Element]:
    return section(page, "mistakes").find("tbody")[0].find("tr")


def test_mistakes_come_with_hint_count_cost_and_students() -> None:
    many = [report(f"s{number}", item(mistakes=("population-std",))) for number in range(9)]
    (card,) = mistakes_of(index_page(many, RUN))
    assert card.find("summary")[0].text == "population-std"
    assert [said(cell) for cell in card.find("td")] == ["compute_deltas", "9", "36"]
    assert card.find(class_="hint-line")[0].text == "They are told What is its standard deviation?"
    people = card.find(class_="people")[0]
    assert [link.text for link in people.find("a")] == [f"s{number}" for number in range(9)]
    assert people.find("a")[8].attributes["href"] == "feedback/s8.html#item-deltas-normalized"
    assert people.find("summary")[0].text == "3 more"


def test_mistake_has_its_clause_and_a_students_code() -> None:
    made = [report(name, item(mistakes=("population-std",))) for name in ("barbara", "ada")]
    page = index_page(made, RUN, background=BACKGROUND)
    (card,) = mistakes_of(page)
    assert "Against “The standard deviation divides by G − 1.”" in card.text
    assert card.find("summary")[1].text == "How ada wrote it"
    assert card.find("pre")[0].text.strip() == "def compute_deltas(rewards):\n    return '''ada\\n''' < 0"
    (lesson,) = tree(page).find("ol", class_="teach")[0].find("li")
    assert "Against “The standard deviation divides by G − 1.”" in lesson.text


def test_shared_answer_has_an_entry_for_the_catalogue() -> None:
    shared, other = {"deltas-normalized": "11aa"}, {"deltas-normalized": "22bb"}
    answers = {"ada": shared, "bob": shared, "cyd": other}
    page = index_page([report(name) for name in answers], RUN, answers=answers, background=BACKGROUND)
    (card,) = section(page, "shared").find("article")
    assert said(card.find("h3")[0]) == "2 students share an answer of compute_deltas 8 points"
    assert [link.attributes["href"] for link in card.find(class_="people")[0].find("a")] == [
        "feedback/ada.html#item-deltas-normalized",
        "feedback/bob.html#item-deltas-normalized",
    ]
    (call,) = ast.parse(f"[\n{textwrap.dedent(card.find('pre')[1].text)}\n]", mode="eval").body.elts
    given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    assert given["function"] == "compute_deltas"
    assert given["source"] == BACKGROUND.code_of("ada", "compute_deltas")
    assert "11aa" not in page


# ---- items


def test_discrimination_has_its_word_and_plausible_range() -> None:
    scores = ((0, 0, 6), (1, 5, 4), (2, 1, 2), (3, 4, 1)) * 3
    rows = ([item("a", points=a), item("b", points=b), item("c", points=c), passed("d")] for a, b, c in scores)
    items = section(index_page([report(f"s{place:02}", *row) for place, row in enumerate(rows)], RUN), "items")
    cells = [said(cell) for cell in items.find("td", class_="tells")]
    assert cells == ["−0.46 reversed −0.8 to 0", "−0.37 reversed −0.7 to +0.2", "−0.71 reversed −0.9 to −0.3"]
    assert said(items.find("details", class_="easy")[0]) == "1 item that everybody passed who ran d title of d"
    flagged = [line.find("code")[0].text for line in items.find("ul", class_="flagged")[0].find("li")]
    assert flagged == ["a", "b", "c", "c"]  # nobody passes them, and one does not go with the others
    assert "read that item again" in said(items)


# ---- faults and times


def test_faulty_submissions_are_told_by_exception_and_line() -> None:
    message = "compute_loss raised TypeError: no.\nLine 31 of your file:\n  loss()"
    broken = report("eve", passed("a"), item("b", "raised", 0.0, function="compute_loss", message=message))
    faults = section(index_page([broken], RUN), "faulty")
    rows = [said(row) for row in faults.find("tbody")[0].find("tr")]
    assert rows == ["raised an error TypeError compute_loss 1 eve line 31 of the file"]
    assert faults.find("a")[0].attributes["href"] == "feedback/eve.html#item-b"
