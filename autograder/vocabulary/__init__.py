"""What every package speaks: errors, the report, text that is safe to show, rows of CSV, files.

Everybody may import it; it imports nothing of the kit.
"""
