# SPDX-License-Identifier: MIT OR Apache-2.0
"""The virtual test bed: what guests are made of, and what is checked and measured in them."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "scripts"))
