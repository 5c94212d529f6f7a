# SPDX-License-Identifier: MIT OR Apache-2.0
"""Owns a selection, `clipboard` or `primary`, by the protocol zwlr_data_control_v1, and answers with a text whenever it is asked."""

import os
import select
import socket
import sys

import wire

TYPES = ("text/plain;charset=utf-8", "text/plain", "UTF8_STRING", "STRING", "TEXT")
SELECT = {"clipboard": 0, "primary": 2}


def own(client, which):
    seat = client.bind("wl_seat", 1)
    manager = client.bind("zwlr_data_control_manager_v1", 2)
    device, source = client.new(), client.new()
    client.request(manager, 1, wire.words(device, seat))
    client.request(manager, 0, wire.words(source))
    for kind in TYPES:
        client.request(source, 0, wire.text(kind))
    client.request(device, SELECT[which], wire.words(source))
    client.settle()


def main():
    client = wire.Client()
    own(client, sys.argv[1])
    while select.select([client.socket], [], []):
        messages, pipes, *_ = socket.recv_fds(client.socket, 65536, 16)
        for pipe in pipes:
            os.write(pipe, b"pasted text")
            os.close(pipe)
        if not messages:
            break


main()
