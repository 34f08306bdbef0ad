"""Reports → self-contained HTML: a student's page, the class's, drawings and templates.

`course` calls it; everything that comes from students is escaped here.
"""
