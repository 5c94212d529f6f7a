# SPDX-License-Identifier: MIT OR Apache-2.0
"""Qt 5 window with a text and two buttons below it, also alt+l and alt+t. One locks the file
`lock` itself; for the other a thread does, while the window's own thread waits for it."""

import fcntl
import pathlib

from PyQt5 import QtCore, QtWidgets


def lock():
    with open(pathlib.Path.home() / "lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


class Locker(QtCore.QThread):
    def run(self):
        lock()


def lock_by_thread():
    thread = Locker()
    thread.start()
    thread.wait()


def press(work):
    work()
    said.setText(said.text() + " locked")


application = QtWidgets.QApplication([])
window, said, text = QtWidgets.QWidget(), QtWidgets.QLabel("ready"), QtWidgets.QTextEdit()
window.setWindowTitle("dial")
window.resize(700, 500)
column, row = QtWidgets.QVBoxLayout(window), QtWidgets.QHBoxLayout()
column.addWidget(text)
column.addWidget(said)
column.addLayout(row)
for name, work in (("&lock", lock), ("by a &thread", lock_by_thread)):
    button = QtWidgets.QPushButton(name)
    button.setFixedHeight(80)
    button.clicked.connect(lambda _checked, work=work: press(work))
    row.addWidget(button)
window.show()
text.setFocus()
application.exec()
