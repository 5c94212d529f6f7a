# SPDX-License-Identifier: MIT OR Apache-2.0
"""Window with a text and two keys: F8 computes for two seconds, F9 queries the service on the
port in a file."""

import pathlib
import socket
import time
import tkinter


def compute(_event):
    end = time.monotonic() + 2
    while time.monotonic() < end:
        sum(range(1000))
    said.config(text=said["text"] + " computed")


def ask(_event):
    port = int(pathlib.Path.home().joinpath("port").read_text())
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.sendall(b"GET / HTTP/1.0\r\n\r\n")
        peer.recv(100)
    said.config(text=said["text"] + " answered")


window = tkinter.Tk(className="button")
text = tkinter.Text(window, width=70, height=20, insertofftime=0)
text.pack()
said = tkinter.Label(window, text="ready")
said.pack()
text.bind("<F8>", compute)
text.bind("<F9>", ask)
text.focus_set()
window.mainloop()
