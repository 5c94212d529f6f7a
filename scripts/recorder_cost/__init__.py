# SPDX-License-Identifier: MIT OR Apache-2.0
"""The parts of docs/overhead.md: each module's `report` gives lines and whether the bars are met."""
