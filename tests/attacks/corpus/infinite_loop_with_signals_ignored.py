"""Never returns, and ignores every signal that can be ignored."""

import signal
import time


def compute_deltas(rewards, mode):
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(60)
