"""Laws: what holds of every graded function of every assignment, derived from its declaration.

A `Function` declares how arguments are drawn, what the oracle says of them and what the function is. An item of
items.toml lists the laws that it judges, and the draws that it judges them over; `Exam` derives its cases from both.
Read `declaration` first, then `laws`, where all of them stand and another one is added, then `exam`.
`texts` draws words.
"""

from autograder.authoring.laws import texts
from autograder.authoring.laws.declaration import USUAL, Draw, Error, Example, Function, Written
from autograder.authoring.laws.exam import Exam

__all__ = ["USUAL", "Draw", "Error", "Exam", "Example", "Function", "Written", "texts"]
