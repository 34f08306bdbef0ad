"""Ends the process with a success status while it is imported."""

import os

os._exit(0)
