"""Turn reports into grades: a course's rules, decisions of staff, final grades, the folder of grades, statistics.

Read `final_grades.py` first: one report and the rules → the final grade. `rules.py` and `decisions.py` read what a
course decided, `grades_folder.py` reads and writes the folder, `roster.py` finds students in other tables,
`class_statistics.py` sums up a class. Nothing is graded here.
"""
