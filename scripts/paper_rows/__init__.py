# SPDX-License-Identifier: MIT OR Apache-2.0
"""What `scripts/papers` is made of: rows, the measurements they rest on, what was measured, document and charts."""
