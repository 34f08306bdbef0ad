"""Read what each platform gives for download of a class: whose each entry is, when it was made, which of them counts.

    moodle       Ana Diaz_12345_assignsubmission_file/…, or _file_ before the name of a file
    blackboard   HW5_adiaz_attempt_2027-03-02-23-58-01_policy_gradient.py, with a .txt for each attempt
    brightspace  123-456 - Ana Diaz - Mar 2, 2027 1158 PM/…, or that before the name of a file
    gradescope   submission_123/… beside submission_metadata.yml
    canvas       diazana_LATE_1001_555_policy_gradient-1.py, all in one folder or zip
    github       assignment-username/…, each a repository

Each platform has a function that makes hand-ins of the entries that bear its names; BY_NAMES says how those are known.
"""

from __future__ import annotations

import contextlib
import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from autograder.gradebook.roster import Roster, is_word
from autograder.submissions.finding import MAX_METADATA, METADATA
from autograder.submissions.names import PART, SOURCES, likeness, stem_of, suffix_of
from autograder.submissions.submission import CAPS, shown_name
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import beginning, is_folder_at, is_there
from autograder.vocabulary.text import visible
from autograder.vocabulary.times import moment_in_words, moment_or_none

Entry = os.DirEntry[str]
Entries = Sequence[Entry]
RESUBMITTED = re.compile(r"(.*?)(?:-(\d{1,4}))?", re.DOTALL)  # Canvas and others number what is handed in again


class Owner(NamedTuple):
    """What a platform calls a student.

    student     the name to use
    identity    the platform's id, which no student chooses, as `Report.identity` has it; "" where a layout has none
    others      other names by which a roster may know the student
    """

    student: str
    identity: str = ""
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class HandIn:
    """One thing handed in, before it is known who the student is and whether it counts.

    owners      the student, or each member of a group
    path        of a folder, or of the likeliest of `files`
    files       loose files, oldest first: name as given, and path
    submitted   when, where the platform says so; without a zone where the platform names none
    order       which of two is later, where the platform says no more than that
    others      files that later ones of the same name replace
    fault       why it cannot be read, as the end of a sentence
    refused     why it is not clear whose it is, as a sentence
    is_none     whether it is no submission at all, and named among what was left out
    """

    owners: tuple[Owner, ...]
    path: Path
    shown: str
    files: tuple[tuple[str, Path], ...] = ()
    submitted: datetime | None = None
    late: bool = False
    order: int = 0
    others: tuple[str, ...] = ()
    fault: str = ""
    refused: str = ""
    is_none: bool = False


def is_folder(entry: Entry) -> bool:
    """Tell whether an entry is a folder, and no link to one."""
    return entry.is_dir(follow_symlinks=False)


# The files and folders of a download → hand-ins


class Piece(NamedTuple):
    """A file or folder of a download, and what its name says of it.

    name        as the student gave it; "" where the platform says none
    submitted   when, with what else was handed in then
    order       which of two is later
    """

    path: Path
    owner: Owner
    name: str = ""
    submitted: datetime | None = None
    late: bool = False
    order: int = 0


def joined(pieces: Iterable[Piece], module: str) -> list[HandIn]:
    """Make one hand-in of what a student handed in at one moment; nothing of an id that two names claim is graded."""
    groups: defaultdict[object, list[Piece]] = defaultdict(list)
    names: defaultdict[str, set[str]] = defaultdict(set)
    for piece in pieces:
        groups[piece.owner, piece.submitted, piece.late].append(piece)
        names[piece.owner.identity].add(piece.owner.student)
    made = []
    for group in groups.values():
        owner, submitted, late = group[0].owner, group[0].submitted, group[0].late
        path = next((each.path for each in group if is_folder_at(each.path) and not each.path.is_symlink()), None)
        files, replaced = dict[str, Path](), []
        for piece in sorted(group, key=lambda each: each.order) if path is None else ():
            name = piece.name or piece.path.name
            match, suffix = RESUBMITTED.fullmatch(stem_of(name)), PurePath(name).suffix.lower()
            if match and match[1] == module and suffix in SOURCES:
                name = f"{module}{suffix}"
            if name in files:
                replaced.append(shown_name(files.pop(name).name))
            files[name] = piece.path
        if path is None:
            path = files[max(reversed(files), key=lambda name: (suffix_of(name) in CAPS, likeness(name, module)))]
        is_claimed_twice = owner.identity and len(names[owner.identity]) > 1
        reason = claimed_by_two(names[owner.identity], owner.identity) if is_claimed_twice else ""
        order, shown, loose = max(piece.order for piece in group), shown_name(path.name), tuple(files.items())
        made.append(HandIn((owner,), path, shown, loose, submitted, late, order, tuple(replaced), refused=reason))
    return made


def claimed_by_two(names: Iterable[str], identity: str) -> str:
    """Say why nothing of an id is graded that two accounts claim."""
    both = " and ".join(visible(name, 60) for name in sorted(set(names))[:2])
    platform, _, number = identity.rpartition(":")
    of = f"the id {visible(number, 40)} of {platform.capitalize()}"
    return f"{both} both claim {of}: say in a roster who is who, or rename one."


def matches(entries: Entries, name: re.Pattern[str]) -> list[tuple[re.Match[str], Path]]:
    """List the entries whose names a pattern matches."""
    return [(match, Path(entry.path)) for entry in entries if (match := name.fullmatch(entry.name))]


# Moodle (mod/assign/classes/downloader.php)

MOODLE_NAME = re.compile(r"(?P<name>[^_]+)(_(?P<id>\d+))?_assignsubmission_(?P<kind>[a-z]+)(_(?P<rest>.*))?", re.DOTALL)


def moodle(entries: Entries, module: str, roster: Roster | None) -> list[HandIn]:
    """Group files or folders by student, files before texts.

    Moodle writes a space for each `_` of a name, so the id is the first number that stands between two. Those in no
    group hand in together, under a name without one; a site may have more kinds of submissions than files and texts
    (`get_student_prefix`, `load_submissionplugin_filelist`).
    """
    pieces = []
    for match, path in sorted(matches(entries, MOODLE_NAME), key=lambda each: each[0]["kind"] != "file"):
        name, number = match["name"], match["id"]
        owner = Owner(f"{name}_{number}", f"moodle:{number}", (name,)) if number else Owner(name)
        pieces.append(Piece(path, owner, match["rest"] or ""))
    return joined(pieces, module)


# Blackboard Learn: <assignment>_<username>_attempt_<yyyy-mm-dd-hh-mm-ss>_<file's name>, and a text file without the
# last part whose first line is `Name: <name> (<username>)`.

BLACKBOARD_NAME = re.compile(
    r"(?P<owner>.+?)_attempt_(?P<day>\d{4}-\d\d-\d\d)-(?P<clock>\d\d-\d\d-\d\d)(?:_(?P<rest>.+)|\.txt)",
    re.ASCII | re.DOTALL,
)
FIRST_LINE = re.compile(r"Name: (?P<name>[^\n]*?) \((?P<username>[^()\n]+)\)\s*\n")
MAX_FIRST_LINE = 1_000  # bytes


def blackboard(entries: Entries, module: str, roster: Roster | None) -> list[HandIn]:
    """Group the files of each attempt, under the username that its text file says."""
    listed = matches(entries, BLACKBOARD_NAME)
    owners = {}
    for match, path in listed:
        text = "" if match["rest"] else beginning(path)[:MAX_FIRST_LINE].decode("utf-8-sig", "replace")
        line = FIRST_LINE.match(text)
        if line and f"_{match['owner']}".endswith(f"_{line['username']}"):
            owners[match["owner"]] = Owner(line["username"], line["username"], (line["name"],))
    pieces = []
    for match, path in listed:
        owner = owners.get(match["owner"], Owner(match["owner"]))
        submitted = moment_or_none(f"{match['day']} {match['clock'].replace('-', ':')}", None)
        pieces.append(Piece(path, owner, match["rest"] or "", submitted))
    return joined(pieces, module)


# Brightspace (D2L): a folder for each submission, or files whose names begin so and go on with ` - <file's name>`;
# index.html lies beside them. One of the two numbers is the same for the whole class, the other is the student's.

BRIGHTSPACE_NAME = re.compile(
    r"(?P<first>\d+)-(?P<second>\d+) - (?P<name>.+?) ?- ?(?P<when>[^-]*\b(?:19|20)\d\d\b[^-]*?)( - (?P<rest>.+))?",
    re.ASCII | re.DOTALL,
)


def brightspace(entries: Entries, module: str, roster: Roster | None) -> list[HandIn]:
    """Group folders, or loose files of one moment, in the platform's unnamed time zone."""
    listed = matches(entries, BRIGHTSPACE_NAME)
    first_is_shared = len({match["first"] for match, _ in listed}) < len({match["second"] for match, _ in listed})
    pieces = []
    for match, path in listed:
        name, number = match["name"], match["second" if first_is_shared else "first"]
        owner = Owner(f"{name}_{number}", f"brightspace:{number}", (name,))
        pieces.append(Piece(path, owner, match["rest"] or "", moment_in_words(match["when"])))
    return joined(pieces, module)


# Gradescope: what submission_metadata.yml says is public in what others read of it alone (`GradescopeParser` of
# otter-grader): `:submitters` with `:name`, `:sid` and `:email`, and `:created_at`.

GRADESCOPE_NAME = re.compile(r"submission_(\d+)")
# The lines that say whose a submission is and when it was made. The rest, such as the output of all tests of all
# submissions, is most of the file and never parsed.
DESCRIPTION = re.compile(r"^(?:\S.*\n|  :(?:submitters|created_at):.*\n(?:(?:  (?:- | ).*)?\n)*)", re.MULTILINE)
MAX_SUBMITTERS = 50  # of one submission
MAX_LENGTH = 300  # characters of a name


def gradescope(entries: Entries, module: str, roster: Roster | None) -> list[HandIn]:
    """Make one hand-in of each folder of an export."""
    folders = [entry for entry in entries if entry.name != METADATA]
    path = Path(next(entry.path for entry in entries if entry.name == METADATA))
    described = read_metadata(path)
    if not any(entry.name in described for entry in folders):
        raise UsageError(f"{path} describes no submission beside it: download the export again.")
    made = []
    for entry in folders:
        created_at, submitters = described.get(entry.name, ("", []))
        owners = []
        for name, sid, email in submitters:
            identity = sid or email  # a name alone, which anybody may choose, makes no two submissions one student's
            student = f"{name}_{identity or entry.name}" if name else identity
            if student:
                owners.append(Owner(student, identity, tuple(filter(None, (email, name)))))
        submitted = moment_or_none(created_at)
        whose = tuple(owners) or (Owner(entry.name),)
        made.append(HandIn(whose, Path(entry.path), shown_name(entry.name), submitted=submitted))
    return made


def read_metadata(path: Path) -> dict[str, tuple[str, list[tuple[str, str, str]]]]:
    """Read when each folder was made, and the name, sid and email of each submitter.

    Raises UsageError where the file is not Gradescope's, or PyYAML is missing.
    """
    try:
        import yaml
    except ModuleNotFoundError:
        advice = "python -m pip install pyyaml"
        raise UsageError(f"Reading what Gradescope exports needs the package pyyaml: {advice}.") from None
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_METADATA + 1)
        if len(data) > MAX_METADATA:
            raise UsageError(f"{path} is larger than {MAX_METADATA // 2**20} MiB: is it Gradescope's?")
        text = f"{data.decode()}\n".replace("\r\n", "\n")
        # The base loader makes texts, lists and dictionaries, whatever a tag asks for, and expands no alias.
        loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
        document = None
        with contextlib.suppress(yaml.YAMLError):
            document = yaml.load("".join(DESCRIPTION.findall(text)), Loader=loader)
        if not (isinstance(document, dict) and all(document.values())):  # other spacing, or an alias
            document = yaml.load(text, Loader=loader)
        if not isinstance(document, dict):
            raise ValueError("it is no mapping")
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): check its permissions.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"{path} is not what Gradescope writes ({first}): download the export again.") from None

    def cell(person: Mapping[str, Any], key: str) -> str:
        value = person.get(key, "")
        return " ".join(value.split())[:MAX_LENGTH] if isinstance(value, str) else ""

    described = {}
    for folder, about in document.items():
        if isinstance(about, dict):
            listed, created_at = about.get(":submitters"), about.get(":created_at")
            people = [person for person in listed if isinstance(person, dict)] if isinstance(listed, list) else []
            described[folder] = (
                created_at if isinstance(created_at, str) else "",
                [(cell(who, ":name"), cell(who, ":sid"), cell(who, ":email")) for who in people[:MAX_SUBMITTERS]],
            )
    return described


# Canvas (canvas-lms: lib/content_zipper.rb)

PREFIX = re.compile(r"_(?P<late>LATE_)?(?P<id>[1-9]\d{0,17})_(?P<file>[1-9]\d{0,17})_(?=.)", re.ASCII | re.DOTALL)
ANONYMOUS = re.compile(
    r"(?P<late>LATE_)?(?P<id>anon_[A-Za-z0-9]{1,18})_(?P<file>\d{1,18})_(?P<rest>.+)", re.ASCII | re.DOTALL
)


def readings(filename: str, path: Path = Path()) -> list[Piece]:
    """Read `<name>[_LATE]_<user>_<file>_<file's name>` in each possible way, the one furthest right first.

    The account's name and the file's are the student's to choose, so there may be several ways. Canvas takes
    `_<digits>_` out of the first, and then all but word characters (`get_filename`, `sanitize_user_name`,
    `sanitize_file_name`); a group's is the group's name, with the id of one member. An anonymous assignment gives
    `[LATE_]anon_<letters>_<file>_<file's name>`. Only the last attempt is in a download.
    """
    if match := ANONYMOUS.fullmatch(filename):
        late = bool(match["late"])
        return [Piece(path, Owner(match["id"]), match["rest"], late=late, order=int(match["file"]))]
    ways = []
    at = 0
    while match := PREFIX.search(filename, at):
        name, number = unicodedata.normalize("NFC", filename[: match.start()]), match["id"]  # macOS unpacks otherwise
        if not name.endswith("_LATE") and all(map(is_word, name)):  # Canvas writes all names small
            owner, late = Owner(f"{name}_{number}", f"canvas:{number}", (name,)), bool(match["late"])
            ways.append(Piece(path, owner, filename[match.end() :], late=late, order=int(match["file"])))
        at = match.start() + 1
    return ways[::-1]


def canvas(files: Entries, module: str, roster: Roster | None) -> list[HandIn]:
    """Group the files of a download by student.

    Where a name can be read in several ways, the id that the roster knows counts; without one, the only reading that
    is possible. A file that can be read as either of two ids is refused, that file alone; so is one whose reading
    gives another name to an id that a clear file has. Two clear names for one id are refused, both.
    """
    listed = [readings(entry.name, Path(entry.path)) for entry in files]
    clear = [ways[0] for ways in listed if len(ways) == 1]
    students = {way.owner.identity: way.owner.student for way in clear}
    # Canvas counts files up, so one of the same assignment is not a tenth of the others, as the parts of a date are.
    # No id is impossible: `q_ 1007_ 501_z` is a display name that Canvas writes as `q_1007_501_z`.
    least = min((way.order for way in clear), default=0) / 10
    pieces, refused = [], []
    for ways in listed:
        ids = {way: way.owner.identity.removeprefix("canvas:") for way in ways}
        known = [way for way in ways if roster is not None and roster.person(ids[way])]
        likely = known or [way for way in ways if way.order >= least] or ways
        numbers, way, reason = dict.fromkeys(ids[way] for way in likely), likely[0], ""
        shown, student = shown_name(way.path.name), way.owner.student
        if len(numbers) > 1:
            either = f"{visible(shown, 200)} can be read as the id {' or '.join(numbers)} of Canvas"
            reason = f"{either}: rename it, with one id in it."
        elif len(ways) > 1 and (other := students.get(way.owner.identity, student)) != student:
            reason = claimed_by_two((other, student), way.owner.identity)
        if reason:
            refused.append(HandIn((), way.path, shown, refused=reason))
        else:
            pieces.append(way)
    return [*joined(pieces, module), *refused]


# GitHub
#
# Clones are named <assignment>-<username>, as GitHub Classroom did until it closed on 28 August 2026; `gh repo clone`
# and scripts of courses keep the names. Classroom 50 writes <classroom>-<assignment>-<username>, all of it small, and
# `gh teacher download` clones a class into <classroom>-<assignment>_submissions_<time>, with `result.json` in each
# clone and `scores.csv` beside them (github.com/foundation50/classroom50: cli/gh-student/internal/reponame,
# cli/gh-teacher/internal/download). A group hands in by the repository of one member: a roster with a column `group`
# gives it to the others.

DOWNLOADED = re.compile(r"-submissions|_submissions_\d{4}_\d\d_\d\d_T_\d\d_\d\d_\d\d")  # behind the assignment's name


def clones_among(entries: Entries) -> list[Entry]:
    """List the repositories among these."""
    return [entry for entry in entries if is_folder(entry) and is_there(Path(entry.path) / ".git")]


def github(clones: Entries, folder: str, module: str, roster: Roster | None) -> list[HandIn]:
    """Make a hand-in of each repository that shares the assignment's name; none where that name is not clear."""
    start = assignment_of([entry.name for entry in clones], folder, roster, module)
    return [
        HandIn((Owner(entry.name.removeprefix(start)),), Path(entry.path), shown_name(entry.name))
        for entry in clones
        if start and entry.name.startswith(start) and entry.name != start
    ]


def assignment_of(names: Sequence[str], folder: str, roster: Roster | None, module: str = "") -> str:
    """Return what stands before the usernames, with its hyphen: what most names share; "" where that is not clear.

    The download's folder says it, then the roster; else it holds the module's name, where names that share more do so.
    """
    starts = Counter(name[: at + 1] for name in names for at, letter in enumerate(name[:-1]) if letter == "-")
    most = max(starts.values(), default=0)
    shared = sorted(start for start, count in starts.items() if count == most and count * 2 > len(names))
    if by_folder := next((start for start in shared if DOWNLOADED.fullmatch(folder.removeprefix(start[:-1]))), ""):
        return by_folder
    if roster is not None:
        usernames = {start: [name[len(start) :] for name in names if name.startswith(start)] for start in shared}
        known = [start for start in shared if all(roster.person(name) for name in usernames[start] if name)]
        return known[0] if len(known) == 1 else ""
    shared = [start for start in shared if module and likeness(start, module) >= PART] or shared
    return shared[0] if len(shared) == 1 and most > 1 else ""


# How each platform's names are known


@dataclass(frozen=True)
class Layout:
    """How one platform lays a class out.

    reads      tells whether a name is one that the platform gives
    hand_ins   says what was handed in as the entries with such names
    folders    whether these are folders; None where they may be either
    beside     a file that lies beside them
    """

    name: str
    reads: Callable[[str], object]
    hand_ins: Callable[[Entries, str, Roster | None], list[HandIn]]
    folders: bool | None = None
    beside: str = ""

    def recognised(self, entries: Entries) -> list[Entry]:
        """Choose the entries that bear the platform's names."""
        known = [e for e in entries if self.reads(e.name) and self.folders in (None, is_folder(e))]
        beside = [e for e in entries if e.name == self.beside and e.is_file(follow_symlinks=False)]
        return [*known, *beside] if known and (beside or not self.beside) else []


BY_NAMES = (
    Layout("moodle", MOODLE_NAME.fullmatch, moodle),
    Layout("blackboard", BLACKBOARD_NAME.fullmatch, blackboard, folders=False),
    Layout("brightspace", BRIGHTSPACE_NAME.fullmatch, brightspace),
    Layout("gradescope", GRADESCOPE_NAME.fullmatch, gradescope, folders=True, beside=METADATA),
    Layout("canvas", readings, canvas, folders=False),
)
