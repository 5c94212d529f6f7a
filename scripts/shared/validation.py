# SPDX-License-Identifier: MIT OR Apache-2.0
"""Limits of `tipme idle --validate`, enlarged by the CPU time of others."""

# Share of others above which a trial is not judged.
DISTURBED_SHARE = 0.05


def taken(trial):
    """Returns the shares of the CPU that others had, and that the hypervisor reported."""
    return [(trial.get("taken") or {}).get(name, 0.0) for name in ("others_share", "steal_share")]


def is_disturbed(trial):
    return sum(taken(trial)) > DISTURBED_SHARE


def limits_us(trial, slower=1):
    """Returns the limits of the median and the 90th percentile on CPUs slower by a factor: others
    may have their share of a middling and of the longest event. Returns none without limits."""
    if trial["p50_us_max"] is None:
        return []
    share, longest = 1e3 * sum(taken(trial)), trial["injected_ms_max"]
    middling = (trial["injected_ms_min"] + longest) / 2
    return [slower * trial["p50_us_max"] + share * middling, slower * trial["p90_us_max"] + share * longest]


def is_within(trial, limits):
    return trial["errors"]["p50_us"] <= limits[0] and trial["errors"]["p90_us"] <= limits[1]


def checked_points(check):
    """Returns the difference from the kernel's account, and its limit, in percentage points."""
    return abs(check["difference_points"]), check["difference_points_max"] + 100 * check.get("steal_share", 0)
