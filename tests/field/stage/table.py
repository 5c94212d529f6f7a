# SPDX-License-Identifier: MIT OR Apache-2.0
"""All scenarios, by name."""

from . import calm

ALL = {scenario.name: scenario for scenario in calm.SCENARIOS}


def find(name):
    return ALL.get(name)
