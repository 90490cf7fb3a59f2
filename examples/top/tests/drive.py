"""Runs a program in a real pseudo-terminal and says what its screen showed.

Usage: drive.py COLUMNS ROWS STEPS -- PROGRAM ARGUMENT...

STEPS is a JSON array of steps: ["wait", text], ["gone", text], ["send", text], ["resize", columns, rows], ["signal", name],
["append", path, text], ["rename", from, to], ["pause", seconds], ["screen"]. Prints one JSON object: the screens, how the program ended, the private modes of the
terminal at the end, and whether its line settings are those of the beginning.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
import unicodedata

PATIENCE = 30.0


class Screen:
    """As much of a terminal as it takes to show what full-screen programs draw."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.modes, self.pending = {}, ""
        self.clear()

    def clear(self):
        self.cells = [[" "] * self.columns for _ in range(self.rows)]
        self.x = self.y = 0

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.clear()

    def feed(self, text):
        text = self.pending + text
        self.pending = ""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                sequence = re.compile(r"\x1b(?:\[([?>]?)([0-9;]*)([@-~])|[()].|[=>78cDEHM])").match(text, at)
                if sequence is None:
                    self.pending = text[at:]
                    return
                if sequence.group(3):
                    self.control(sequence.group(1), sequence.group(2), sequence.group(3))
                at = sequence.end()
            else:
                self.show(text[at])
                at += 1

    def control(self, private, numbers, final):
        values = [int(n) if n else 0 for n in numbers.split(";")]
        if private == "?" and final in "hl":
            for value in values:
                self.modes[value] = final == "h"
            if 1049 in values:
                self.clear()
        elif final in "Hf":
            self.y = max(values[0], 1) - 1
            self.x = max(values[1] if len(values) > 1 else 1, 1) - 1
        elif final == "J":
            self.cells = [[" "] * self.columns for _ in range(self.rows)]

    def show(self, character):
        if character == "\r":
            self.x = 0
        elif character == "\n":
            self.y = min(self.y + 1, self.rows - 1)
        elif character >= " " and self.y < self.rows and self.x < self.columns:
            self.cells[self.y][self.x] = character
            self.x += 1
            if unicodedata.east_asian_width(character) in "WF" and self.x < self.columns:
                self.cells[self.y][self.x] = ""
                self.x += 1

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells)


def set_size(fd, columns, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def main():
    columns, rows, steps = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    program = sys.argv[sys.argv.index("--") + 1:]
    ready, go = os.pipe()
    pid, fd = pty.fork()
    if pid == 0:
        os.close(go)
        os.read(ready, 1)  # the size is set before the program starts
        os.execvp(program[0], program)
    os.close(ready)
    set_size(fd, columns, rows)
    before = termios.tcgetattr(fd)
    os.write(go, b"x")
    os.close(go)
    screen, screens, ended, raw = Screen(columns, rows), [], None, ""

    def pump(seconds):
        nonlocal ended, raw
        readable, _, _ = select.select([fd], [], [], seconds)
        if readable:
            try:
                data = os.read(fd, 65536)
            except OSError:
                data = b""
            text = data.decode("utf-8", "replace")
            raw += text
            screen.feed(text)
        if ended is None:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                ended = status

    def until(holds, what):
        limit = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > limit or ended is not None:
                print(f"never: {what}\n{screen.text()}", file=sys.stderr)
                if ended is None:
                    os.kill(pid, signal.SIGKILL)
                sys.exit(3)
            pump(0.05)

    for step in steps:
        if step[0] == "wait":
            until(lambda: step[1] in screen.text(), f"saw {step[1]!r}")
        elif step[0] == "gone":
            until(lambda: step[1] not in screen.text(), f"lost {step[1]!r}")
        elif step[0] == "send":
            os.write(fd, step[1].encode())
        elif step[0] == "resize":
            screen.resize(step[1], step[2])
            set_size(fd, step[1], step[2])
        elif step[0] == "signal":
            os.kill(pid, getattr(signal, step[1]))
        elif step[0] == "append":
            with open(step[1], "a", encoding="utf-8") as file:
                file.write(step[2])
        elif step[0] == "rename":
            os.rename(step[1], step[2])
        elif step[0] == "screen":
            # Nothing more comes for a while.
            while True:
                length = len(raw)
                pump(0.4)
                if len(raw) == length:
                    break
            screens.append(screen.text())
        elif step[0] == "pause":
            limit = time.monotonic() + step[1]
            while time.monotonic() < limit:
                pump(0.05)
    limit = time.monotonic() + PATIENCE
    while ended is None and time.monotonic() < limit:
        pump(0.05)
    if ended is None:
        os.kill(pid, signal.SIGKILL)
        print(f"did not end\n{screen.text()}", file=sys.stderr)
        sys.exit(3)
    while select.select([fd], [], [], 0)[0]:
        length = len(raw)
        pump(0)
        if len(raw) == length:
            break
    print(json.dumps({
        "screens": screens,
        "code": os.waitstatus_to_exitcode(ended),
        "modes": {str(mode): on for mode, on in screen.modes.items()},
        "restored": termios.tcgetattr(fd) == before,
        "raw": raw,
    }))


main()
