# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parts of docs/results/overhead.md: each module's `report` returns lines and True if the bars are met."""

# Rounds of the compile and of the gestures, which take long.
PAIRS = 5
