# SPDX-License-Identifier: MIT OR Apache-2.0
"""Faults from outside."""

def after_mark(session):
    pass
