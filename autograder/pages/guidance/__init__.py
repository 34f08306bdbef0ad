"""What pages advise: a student's next step, the text of a question to staff, what to teach next.

The pages call it; it reads reports and knows no HTML.
"""
