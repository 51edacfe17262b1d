"""Free ports on loopback for programs that are started here."""
import os
import pathlib
import random
import socket


def span():
    """this process's own part of them; below the ports that the kernel gives to outgoing connections, one of which could sit on a
    port while the program that listens there is down"""
    below = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    low, high = (10000, below) if below > 14000 else (below, 65000)
    nth, parts = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    part = (high - low) // parts
    return low + nth * part, low + (nth + 1) * part


def is_free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)    # as our programs do: what closed lately is free
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


next_port = 0


def free_port(n=1):
    """the first of n neighbouring ports that nobody uses now; none is given twice before all were"""
    global next_port
    low, high = span()
    base, tried = next_port or random.randrange(low, high), 0
    while tried < 2 * (high - low):
        base = low if base + n > high else base
        free = next((i for i in range(n) if not is_free(base + i)), n)
        if free == n:
            next_port = base + n
            return base
        base, tried = base + free + 1, tried + free + 1
    raise RuntimeError(f"no {n} free ports in a row from {low} to {high}")
