"""Pairs of runs, with and without the shim, and what their differences say on a noisy machine."""

import math
import os
import statistics
import time
from typing import NamedTuple


class Took(NamedTuple):
    """One run of a program: seconds on the clock, seconds of processor (its children's too), exit status, time.monotonic()."""
    wall: float
    cpu: float
    status: int
    ended: float


def run_once(argv, env, stderr=None):
    """Runs the program to its end with its output thrown away, or its stderr written to the file named."""
    null = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, stderr or "/dev/null", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
    begin = time.monotonic()
    child = os.posix_spawn(argv[0], argv, env, file_actions=null)
    _, status, usage = os.wait4(child, 0)
    ended = time.monotonic()
    return Took(ended - begin, usage.ru_utime + usage.ru_stime, os.waitstatus_to_exitcode(status), ended)


def pairs(argv, without, within, count, check=None):
    """[(without, with)], each pair run back to back, the order changing from pair to pair.

    check(took, shimmed) raises where a run did not do what is being measured.
    """
    measured = []
    for env in (without, within):
        run_once(argv, env)     # fills the page cache
    for number in range(count):
        pair = [None, None]
        for which in ((0, 1), (1, 0))[number % 2]:
            pair[which] = run_once(argv, (without, within)[which])
            if check:
                check(pair[which], which == 1)
        measured.append(tuple(pair))
    return measured


class Interval(NamedTuple):
    """A median and where the true one lies, 19 times in 20."""
    low: float
    median: float
    high: float

    def scaled(self, factor):
        return Interval(*(factor * value for value in self))


def interval(values):
    """By order statistics: no assumption about the shape of the noise (a binomial of 1/2 counts the values below)."""
    values = sorted(values)
    count = len(values)
    below, rank = 0.0, 0
    while rank < count // 2:
        below += math.comb(count, rank) / 2 ** count
        if below > 0.025:
            break
        rank += 1
    low = max(rank - 1, 0)
    return Interval(values[low], statistics.median(values), values[count - 1 - low])


def verdict(found, budget):
    """A budget is kept or broken only where the noise leaves no doubt.

    Where more runs than there are processors, everything takes longer, and evenly so: that breaks no budget.
    """
    if found.high <= budget:
        return "pass"
    if found.low > budget and os.getloadavg()[0] <= os.cpu_count():
        return "FAIL"
    return "pass?" if found.median <= budget else "fail?"
