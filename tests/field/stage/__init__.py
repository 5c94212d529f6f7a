# SPDX-License-Identifier: MIT OR Apache-2.0
"""The stage of the field test: sessions, programs, faults, truth and verdicts."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "scripts"))
