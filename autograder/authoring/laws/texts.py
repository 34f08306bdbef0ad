"""Draws of texts and words by their kind, for the `draws` of a declaration:

draws={"usual": lambda rng: {"text": texts.words(rng)}, "empty": lambda rng: {"text": ""}}
"""

from __future__ import annotations

import numpy as np

WORDS = ("stone", "notes", "onset", "tones", "level", "noon", "a", "an", "tea", "eat", "apple", "zebra")


def letters(rng: np.random.Generator, alphabet: str = "abcde ", longest: int = 12) -> str:
    """Draw a text of four letters or more, some of which occur again."""
    return "".join(rng.choice([*alphabet], rng.integers(4, longest + 1)))


def word_list(rng: np.random.Generator, longest: int = 8) -> list[str]:
    """Draw a list of three words or more, all different: short and long ones, anagrams and palindromes among them."""
    return [str(word) for word in rng.choice(WORDS, rng.integers(3, longest + 1), replace=False)]


def repeated_words(rng: np.random.Generator, longest: int = 8) -> list[str]:
    """Draw a list in which every word occurs more than once, though not equally often."""
    several = [word for place, word in enumerate(word_list(rng, longest)) for _ in range(2 + place % 3)]
    return [str(word) for word in rng.permutation(several)]


def anagrams(rng: np.random.Generator) -> list[str]:
    """Draw two words of the same letters, then a third that has one letter more."""
    word = str(rng.choice([word for word in WORDS if len(set(word)) > 1]))
    return [word, "".join(rng.permutation([*word])), f"{word}{rng.choice([*word])}"]


def words(rng: np.random.Generator, longest: int = 8) -> str:
    """Draw a text of several words, one of them twice, some with a capital letter or a comma."""
    several = word_list(rng, longest)
    several.insert(int(rng.integers(len(several))), several[0])
    dressed = [str(rng.choice([word, word, word.capitalize(), f"{word},"])) for word in several]
    return " ".join(dressed)


def palindrome(rng: np.random.Generator) -> str:
    """Draw a text that reads the same backwards, spaces aside."""
    half = letters(rng, "abcde", 6)
    text = half + half[::-1][int(rng.integers(2)) :]
    gap = int(rng.integers(1, len(text)))
    return f"{text[:gap]} {text[gap:]}"


def counts(rng: np.random.Generator, *, ties: bool = False) -> dict[str, int]:
    """Draw a dictionary of words and numbers from 1 to 9: all different or, with `ties`, two of them equal.

    Of two equal ones that which comes last in the alphabet stands first.
    """
    keys = word_list(rng)
    if ties and keys[0] < keys[-1]:
        keys = keys[::-1]
    numbers = [int(number) for number in rng.permutation(np.arange(1, 10))[: len(keys)]]
    return dict(zip(keys, [numbers[-1], *numbers[1:]] if ties else numbers, strict=True))
