# SPDX-License-Identifier: MIT OR Apache-2.0
"""The virtual test bed: parts of guests, and the checks and measurements in them."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "scripts"))
