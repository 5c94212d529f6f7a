# SPDX-License-Identifier: MIT OR Apache-2.0
"""Stage under Wayland: a session on a compositor without a screen, its input and the truth of
its screen."""
