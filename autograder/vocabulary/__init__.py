"""What every package speaks; it imports nothing else of the kit. `report.py` first: everything ends there.

errors        the kit's exceptions, and whose fault each is        text     what may be shown: escapes, numbers, words
report        the report of a submission, as data and JSON         files    writing, opening, CSV
report_text   the same in words                                    times    moments that are read, time limits
"""
