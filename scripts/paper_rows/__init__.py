# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parts of `scripts/papers`: rows, their measurements, results, document and charts."""
