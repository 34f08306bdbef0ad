"""What a wrong answer is told: clues from numbers, reasons, their wording, pictures.

`grading.grader` calls it; nothing else decides what a student reads.
"""
