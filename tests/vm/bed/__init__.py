# SPDX-License-Identifier: MIT OR Apache-2.0
"""The virtual test bed. `checks` says what is checked, `machine` runs a guest, `image` and `kernels` build it."""
