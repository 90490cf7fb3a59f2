"""What the live view costs with many sessions, measured from outside, as parts of one core.

Usage: live.py PROGRAM HOME [SESSIONS]: HOME was made by `examples/demo`; one of its documents is copied SESSIONS times.
"""

import datetime
import fcntl
import os
import pathlib
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time

NAME = "ses_5Fb3kQvTzA"


def line(session, tool):
    now = datetime.datetime.now(datetime.timezone.utc)
    at = now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03}Z"
    return f"{at} session={session} tool={tool} fingerprint=ab12cd34ef56 outcome=ok duration=45ms\n"


def main():
    program, source = sys.argv[1], pathlib.Path(sys.argv[2]) / ".cache/bizarharness"
    sessions = [f"ses_{number:06}" for number in range(int(sys.argv[3]) if len(sys.argv) > 3 else 1000)]
    document = (source / f"{NAME}.json").read_text()
    with tempfile.TemporaryDirectory() as home:
        state = pathlib.Path(home) / ".cache/bizarharness"
        (state / "logs").mkdir(parents=True)
        for session in sessions:
            (state / f"{session}.json").write_text(document.replace(NAME, session))
            (state / "logs" / f"{session}.log").write_text("".join(line(session, "read") for _ in range(50)))
        measure(program, {"HOME": home, "TERM": "xterm"}, state, sessions, document)


def measure(program, environment, state, sessions, document):
    child = subprocess.Popen([program, "--once"], env=environment, stdout=subprocess.DEVNULL)
    used = os.wait4(child.pid, 0)[2]
    print(f"{len(sessions)} sessions: start {used.ru_utime + used.ru_stime:.2f} s of one core, {used.ru_maxrss // 1024} MiB")

    pid, fd = pty.fork()
    if pid == 0:
        os.execve(program, [program], environment)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))

    def drain(seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([fd], [], [], 0.02)[0]:
                os.read(fd, 65536)

    def core(act, times, pause):
        def used():
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        before, begun = used(), time.monotonic()
        for number in range(times):
            act(number)
            drain(pause)
        return f"{(used() - before) / (time.monotonic() - begun):.1%} of one core"

    def append(number):
        for at in range(10):
            session = sessions[(number * 10 + at) % len(sessions)]
            with open(state / "logs" / f"{session}.log", "a", encoding="utf-8") as log:
                log.write(line(session, "bash"))

    def replace(number):
        for session in sessions[number % 20::20]:
            (state / ".new").write_text(document.replace(NAME, session))
            (state / ".new").rename(state / f"{session}.json")

    drain(3)
    print("nothing happens:", core(lambda _: None, 1, 20))
    print("100 lines a second:", core(append, 100, 0.1))
    print("half of all documents replaced every second:", core(replace, 50, 0.1))
    waits = []
    for _ in range(31):
        drain(0.1)
        begun = time.monotonic()
        os.write(fd, b"j")
        select.select([fd], [], [], 5)
        waits.append(time.monotonic() - begun)
    print(f"a key is answered in {sorted(waits)[15] * 1000:.0f} ms (median), {max(waits) * 1000:.0f} ms (worst)")
    os.write(fd, b"q")
    os.waitpid(pid, 0)


main()
