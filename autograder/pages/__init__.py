"""Reports → self-contained HTML for students and staff; all that comes from students is escaped here.

`student_page` renders a report for its student, with the code from `listing` and SVG from `drawings`; `class_page`
renders a class for its staff. `html` holds what all pages share: templates, filters, the policy that loads nothing.
Read `html` first, then `student_page` beside `templates/feedback.html`.
"""
