"""Raises text that would be a script in a page and a formula in a table."""


def compute_deltas(rewards, mode):
    raise RuntimeError("=HYPERLINK(1)</pre><script>alert(1)</script>\r\n,\"'--><img src=x onerror=alert(2)>")
