# SPDX-License-Identifier: MIT OR Apache-2.0
"""Test of complete desktops on private displays, from `tipme setup` to the answer of the hot key."""
