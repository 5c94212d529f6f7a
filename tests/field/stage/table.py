# SPDX-License-Identifier: MIT OR Apache-2.0
"""All scenarios, by name."""

from . import calm, life, reported, wayland_rows

ALL = {scenario.name: scenario for scenario in (*calm.SCENARIOS, *life.SCENARIOS, *wayland_rows.SCENARIOS, *reported.SCENARIOS)}


def find(name):
    return ALL.get(name)
