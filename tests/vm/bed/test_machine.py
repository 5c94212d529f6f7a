# SPDX-License-Identifier: MIT OR Apache-2.0
"""Slow boots and the lock against a second guest, tested without a guest. `make test-vm` runs this first."""

import contextlib
import io
import os
import tempfile
import types
import unittest
from unittest import mock

from .machine import BOOTS_MAX, Machine, NotBooted
from .places import CannotRun, alone


class Slow(Machine):
    """Guest with failing first boots."""

    def __init__(self, failures):
        super().__init__(None, types.SimpleNamespace(series="6.1"), None)
        self.failures, self.folders = list(failures), []

    def start(self):
        self.folders.append(self.folder)
        if self.failures:
            raise self.failures.pop(0)


def entered(failures):
    """Returns the guest, its output and its error."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        machine = Slow(failures)
        try:
            with machine:
                pass
        except CannotRun as error:
            return machine, said.getvalue(), error
    return machine, said.getvalue(), None


class Boots(unittest.TestCase):
    def test_a_slow_boot_is_repeated_once_with_a_message(self):
        machine, said, error = entered([NotBooted("the guest did not boot within 240 s: [  99.1] systemd")])
        self.assertIsNone(error)
        self.assertEqual(len(machine.folders), BOOTS_MAX)
        self.assertIn("guest 6.1: the guest did not boot within 240 s", said)
        self.assertIn("boot 2 of 2", said)

    def test_the_second_slow_boot_is_the_last(self):
        machine, _, error = entered([NotBooted("once"), NotBooted("twice"), NotBooted("thrice")])
        self.assertEqual((str(error), len(machine.folders)), ("twice", BOOTS_MAX))

    def test_another_failure_is_not_tried_again(self):
        machine, said, error = entered([CannotRun("QEMU ended with code 1")])
        self.assertEqual((str(error), len(machine.folders), said), ("QEMU ended with code 1", 1, ""))

    def test_nothing_is_left_behind(self):
        machine, _, _ = entered([NotBooted("once"), NotBooted("twice")])
        self.assertEqual([folder for folder in machine.folders if folder.exists()], [])


class Alone(unittest.TestCase):
    def test_a_second_guest_is_refused_with_the_pid_of_the_first(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, TIPME_VM_CACHE=folder):
            with alone():
                self.assertRaisesRegex(CannotRun, f"another guest runs \\(pid {os.getpid()}\\)", alone)
            alone().close()
