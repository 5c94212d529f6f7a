# SPDX-License-Identifier: MIT OR Apache-2.0
"""The stage of the field test: sessions, programs, faults, truth and verdicts."""
