"""A page as a tree of elements, so that tests can ask what stands where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "hr", "img"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def find(self, tag: str = "", **wanted: str) -> list[Element]:
        """The elements below with that tag and those attributes; `class_` is one of the classes."""
        return [element for element in self.walk() if _matches(element, tag, wanted)]

    def walk(self) -> Iterator[Element]:
        for child in self.children:
            if isinstance(child, Element):
                yield child
                yield from child.walk()


def _matches(element: Element, tag: str, wanted: dict[str, str]) -> bool:
    classes = element.attributes.get("class", "").split()
    return (
        tag in ("", element.tag)
        and wanted.get("class_", classes[0] if classes else "") in (classes or [""])
        and all(element.attributes.get(name) == value for name, value in wanted.items() if name != "class_")
    )


class _Tree(HTMLParser):
    """Builds the tree and holds that every element is closed in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"<{tag}> repeats an attribute"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def tree(page: str) -> Element:
    parser = _Tree()
    parser.feed(page)
    parser.close()
    assert parser.open == [parser.root]
    return parser.root
