# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whole desktops on private displays, and the way from `tipme setup` to an answered press on each."""
