"""The class page says who did what, what went wrong and what to do about it; test_pages has what all pages share."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import replace

from page_tree import Element, tree
from sample_reports import index_page

from autograder.gradebook.final_grades import Adjustment, Final
from autograder.pages.class_page import Background
from autograder.vocabulary.report import CaseResult, ItemResult, Report, SubmissionInfo, Verdict

RUN = {
    "assignment": "policy_gradient",
    "started": "2031-03-02T14:05:11Z",
    "seconds": 93.2,
    "isolation": ["landlock", "seccomp"],
}
QUOTES = "'''"
BACKGROUND = Background(
    clauses={"population-std": "The standard deviation divides by G − 1."},
    sections={"compute_deltas": "From rewards to deltas"},
    code_of=lambda student, function: f"def {function}(rewards):\n    return {QUOTES}{student}\\n{QUOTES} < 0\n",
)


def item(
    name: str = "deltas-normalized",
    verdict: Verdict = "failed",
    points: float | None = 2.0,
    *,
    function: str = "compute_deltas",
    message: str = "5 of 15 values differ.",
    mistakes: tuple[str, ...] = (),
    seconds: float = 0.25,
) -> ItemResult:
    cases = (CaseResult("small", "public", verdict, message), CaseResult("large", "hidden", "passed", ""))
    title, hint = f"title of {name}", "What is its standard deviation?"
    return ItemResult(name, function, title, points, 6.0, verdict, mistakes, message, hint, seconds, cases)


def passed(name: str, function: str = "compute_reward") -> ItemResult:
    return replace(item(name, "passed", 6.0, function=function), message="", hint="")


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


# ---- the table of students


def students(page: str) -> list[Element]:
    return tree(page).find("table", id="class")[0].find("tbody")[0].find("tr")


def heads(page: str) -> list[str]:
    return [head.text for head in tree(page).find("table", id="class")[0].find("th", scope="col")]


def test_a_row_tells_points_functions_every_verdict_and_what_stands_out() -> None:
    page = index_page([report()], RUN)
    (ada,) = students(page)
    assert dict(zip(heads(page), cells_of(ada), strict=True)) == {
        "student": "ada",
        "points": "8",
        "compute_reward": "6",
        "reward-lists": "passed",
        "compute_deltas": "2",
        "deltas-normalized": "failed, 2 of 6",
        "compute_loss": "0",
        "loss-clipped": "raised an error, 0 of 6",
        "what stands out": "raised an error",
    }
    assert [cell.attributes.get("data-p") for cell in ada.find("td", class_="failed")] == ["2"]


def test_a_status_is_told_only_where_it_differs() -> None:
    ada, bob = students(index_page([faulty(), report()], RUN))
    assert cells_of(ada)[:2] == ["ada", "8"]
    assert cells_of(bob)[:2] == ["bob", "–, not graded"]
    assert bob.find("td", class_="not_graded")[0].text == "could not be graded"
    assert bob.find("td", class_="absent")[0].text == "not in this report"
    assert heads(index_page([report()], RUN))[:2] == ["student", "points"]


def test_final_grades_stand_where_rules_apply_with_what_was_earned_and_who_is_excused_is_said_to_be() -> None:
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


def test_a_grade_that_rules_withhold_is_no_fault_of_the_grader() -> None:
    withheld = Final(None, (Adjustment("no-time", "", 8.0, None, "when?"),), 18)
    page = index_page([report()], RUN, finals={"ada": withheld})
    assert cells_of(students(page)[0])[:2] == ["ada", "–, graded 8, no final grade"]
    assert not tree(page).find("section", class_="fault-box")


# ---- mistakes


def mistakes_of(page: str) -> list[Element]:
    return section(page, "mistakes").find("article")


def lessons_of(page: str) -> list[Element]:
    return tree(page).find("ol", class_="teach")[0].find("li")


def test_mistakes_come_with_hint_count_cost_and_students() -> None:
    many = [report(f"s{number}", item(mistakes=("population-std",))) for number in range(9)]
    (card,) = mistakes_of(index_page(many, RUN))
    assert said(card.find("h3")[0]) == "population-std in compute_deltas: 9 students, 36 points"
    assert card.find(class_="hint-line")[0].text == "They are told What is its standard deviation?"
    people = card.find(class_="people")[0]
    assert [link.text for link in people.find("a")] == [f"s{number}" for number in range(9)]
    assert people.find("a")[8].attributes["href"] == "feedback/s8.html#item-deltas-normalized"
    assert people.find("summary")[0].text == "3 more"


def test_three_misunderstandings_are_taught_and_not_one_that_cost_nothing() -> None:
    rows = [report(f"s{place}", item("a", points=float(place), mistakes=(f"m{place}",))) for place in range(7)]
    names = [lesson.find("a")[0].text for lesson in lessons_of(index_page(rows, RUN))]
    assert names == ["m0", "m1", "m2"]
    assert len(lessons_of(index_page(rows[5:], RUN))) == 1


def test_a_mistake_is_told_with_the_sentence_it_goes_against_and_how_a_student_wrote_it() -> None:
    made = [report(name, item(mistakes=("population-std",))) for name in ("barbara", "ada")]
    page = index_page(made, RUN, background=BACKGROUND)
    (card,) = mistakes_of(page)
    assert "Against “The standard deviation divides by G − 1.”" in card.text
    assert card.find("summary")[0].text == "How ada wrote it"
    assert card.find("pre")[0].text.strip() == "def compute_deltas(rewards):\n    return '''ada\\n''' < 0"
    (lesson,) = lessons_of(page)
    assert "Against “The standard deviation divides by G − 1.”" in lesson.text
    assert "In the handout's text, section “From rewards to deltas”" in lesson.text


def test_an_answer_without_a_name_that_students_share_is_told_with_an_entry_for_the_catalogue() -> None:
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


def test_what_students_did_instead_stands_beside_each_item() -> None:
    made = [report(f"s{place}", item(mistakes=("population-std",) * (place < 2))) for place in range(3)]
    row = section(index_page(made, RUN), "items").find("tr")[1]
    assert said(row.find("td", class_="instead")[0]) == "population-std 2 another wrong answer 1"


def test_discrimination_is_told_with_the_word_for_what_it_means_and_what_is_plausible() -> None:
    scores = ((0, 0, 6), (1, 5, 4), (2, 1, 2), (3, 4, 1)) * 3
    rows = ([item("a", points=a), item("b", points=b), item("c", points=c), passed("d")] for a, b, c in scores)
    items = section(index_page([report(f"s{place:02}", *row) for place, row in enumerate(rows)], RUN), "items")
    cells = [said(cell) for cell in items.find("td", class_="tells")]
    assert cells == ["−0.46 reversed −0.8 to 0", "−0.37 reversed −0.7 to +0.2", "−0.71 reversed −0.9 to −0.3", "–"]
    flagged = [line.find("code")[0].text for line in items.find("ul", class_="flagged")[0].find("li")]
    assert flagged == ["a", "a", "b", "b", "c", "c"]  # nobody passes them, and they do not go with the others
    assert "read that item again" in said(items)


# ---- faults and times


def test_faulty_submissions_are_told_by_exception_and_line() -> None:
    message = "compute_loss raised TypeError: no.\nLine 31 of your file:\n  loss()"
    broken = report("eve", passed("a"), item("b", "raised", 0.0, function="compute_loss", message=message))
    faults = section(index_page([broken], RUN), "faulty")
    rows = [said(row) for row in faults.find("tbody")[0].find("tr")]
    assert rows == ["raised an error TypeError compute_loss 1 eve line 31 of the file"]
    assert faults.find("a")[0].attributes["href"] == "feedback/eve.html#item-b"


def test_only_what_took_unusually_long_is_told_the_longest_first() -> None:
    usual = [report(f"u{place}", item(seconds=0.5), item("b", seconds=1 / 128)) for place in range(9)]
    slow = [report("slow", item(seconds=130.0), item("b", seconds=2.0)), report("even", item(seconds=4.0))]
    times = section(index_page([*usual, *slow], RUN), "times")
    rows = [said(row) for row in times.find("tbody")[0].find("tr")]
    assert rows == ["slow deltas-normalized failed 2 min 10 s 500 ms", "slow b failed 2.0 s 8 ms"]
    assert times.find("a")[1].attributes["href"] == "feedback/slow.html#item-b"
