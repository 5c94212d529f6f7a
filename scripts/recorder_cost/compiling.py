# SPDX-License-Identifier: MIT OR Apache-2.0
"""Cost of recording for a real compile."""

import contextlib
import pathlib
import resource
import shutil
import statistics
import subprocess
import tempfile
import time

from shared import CannotRun, progress
from shared.figures import bar, in_turn, interval
from shared.kernel_programs import counting, spent
from shared.machine import ROOT
from shared.proc import cpu_seconds

from . import PAIRS
from .arms import ARMS, tipme

# Without samples, since these interrupt each CPU 99 times a second.
BESIDE = ("bare", "tipme", "unsampled")
PERCENT = 1.0
# Compiled package, with its dependencies: more than a minute on two fast CPUs, but no longer than
# necessary.
COMPILED = "tipme-command"
# The bar applies to compiles that take longer, in seconds.
MIN_S = 60


def compile_once(tree):
    """Builds a package from scratch; returns wall time and CPU time in seconds."""
    shutil.rmtree(tree / "target", ignore_errors=True)
    command = ["cargo", "build", "--release", "--package", COMPILED, "--offline", "--quiet", "--target-dir", tree / "target"]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    run = subprocess.run(command, cwd=tree, stderr=subprocess.PIPE, text=True, check=False)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode != 0:
        raise CannotRun(f"the compile fails: {run.stderr[-2000:]}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@contextlib.contextmanager
def copy_of_tree():
    """Copies the workspace to a folder of its own, so that no edits change the comparison."""
    with tempfile.TemporaryDirectory(prefix="tipme-compile-") as folder:
        tree = pathlib.Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns("target", ".git"))
        yield tree


def expect_long(seconds):
    if seconds < MIN_S:
        raise CannotRun(f"the compile takes less than {MIN_S} s on this machine; the bar is for longer ones")


def pairs_of(options, tree):
    """Returns the time beside each arm for each round; the order rotates."""
    pairs = []
    warm_up_s, _ = compile_once(tree)
    progress(f"a compile to warm up: {warm_up_s:.1f} s")
    expect_long(warm_up_s)
    for number in range(PAIRS):
        result = {}
        for arm in in_turn(BESIDE, number):
            with ARMS[arm](options):
                result[arm] = compile_once(tree)
        pairs.append(result)
        progress(f"round {number + 1} of {PAIRS}: " + ", ".join(f"{arm} {wall:.1f} s" for arm, (wall, _) in result.items()))
    return pairs


def own_shares(options, tree):
    """Returns the share of a compile's CPU time that the recorder's kernel programs and its own
    threads take, in percent."""
    progress("a compile with the recorder's programs counted")
    with tipme(options) as pid, counting(pid) as programs:
        taken = lambda: (sum(nanos for nanos, _ in spent(programs).values()) / 1e9, sum(cpu_seconds(pid)))  # noqa: E731
        before = taken()
        _, cpu = compile_once(tree)
        return [100 * (now - then) / cpu for now, then in zip(taken(), before)]


def slowdown(pairs, what, arm="tipme"):
    """Returns the median slowdown and its 95% interval, in percent."""
    values = [100 * (pair[arm][what] / pair["bare"][what] - 1) for pair in pairs]
    return statistics.median(values), *interval(values)


def report(options):
    with copy_of_tree() as tree:
        pairs, shares = pairs_of(options, tree), own_shares(options, tree)
    seconds = [pair["bare"][0] for pair in pairs]
    expect_long(min(seconds))
    median, low, high = slowdown(pairs, 0)
    line, met = bar("slowdown, wall time, median", median, PERCENT, " %")
    if low <= PERCENT < high:
        line, met = line.rpartition(": ")[0] + ": not shown, the interval lies on both sides of it)", False
    lines = [f"{line}; 95 % interval {low:+.2f} to {high:+.2f} %, {len(pairs)} pairs"]
    lines.append("- slowdown, CPU time, median: {:+.2f} %; 95 % interval {:+.2f} to {:+.2f} %, {} pairs".format(*slowdown(pairs, 1), len(pairs)))
    lines.append("- the same without samples: {:+.2f} %; 95 % interval {:+.2f} to {:+.2f} %".format(*slowdown(pairs, 1, "unsampled")))
    lines.append("- of the CPU time of one more compile, as the kernel counts it: the recorder's programs in the kernel {:.2f} %, its own threads {:.2f} %".format(*shares))
    title = f"`cargo build --release -p {COMPILED}` from nothing ({statistics.median(seconds):.0f} s bare), without and with the recorder:"
    return [title, "", *lines], met
