"""A small terminal: runs a shell command with standard error on a pseudo-terminal and keeps what would be seen there.

It knows what the tools use: CR, LF, cursor up, home, erase, colours, the other screen, the cursor hidden.  Anything else is an error.
"""
import fcntl, os, pty, re, select, signal, struct, subprocess, sys, termios, time

ESCAPE = re.compile(r"\033\[(\??[0-9;]*)([A-Za-z])")


class Terminal:
    def __init__(self, command, columns, rows, env=None):
        self.master, slave = pty.openpty()
        self.rest, self.too_wide = b"", 0
        self.size(columns, rows)
        env = dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8", **(env or {}))
        self.process = subprocess.Popen("trap : TERM; " + command, shell=True, executable="/bin/bash", stdout=subprocess.DEVNULL, stderr=slave,
                                        stdin=subprocess.DEVNULL, env=env, start_new_session=True)
        os.close(slave)
        self.raw = ""
        self.modes = set()  # of those a program switches on and has to switch off again

    def size(self, columns, rows):
        self.columns, self.rows, self.x, self.y = columns, rows, 0, 0
        self.cells = [[" "] * columns for _ in range(rows)]
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def erase(self, y, x, to):
        for i in range(x, min(to, self.columns)):
            self.cells[y][i] = " "

    def mode(self, n, on):
        if n == "?25":
            on = not on  # what is unusual is a cursor that hides
        elif on:
            self.main = self.cells, self.x, self.y
            self.cells = [[" "] * self.columns for _ in range(self.rows)]
        elif n in self.modes:
            self.cells, self.x, self.y = self.main
        (self.modes.add if on else self.modes.discard)(n)

    def take(self, text):
        self.raw += text
        i = 0
        while i < len(text):
            m = ESCAPE.match(text, i)
            if m:
                n, kind = m.groups()
                i = m.end()
                if kind == "A":
                    self.y = max(0, self.y - int(n or 1))
                elif kind == "H":
                    self.x = self.y = 0
                elif kind == "K":
                    self.erase(self.y, self.x, self.columns)
                elif kind == "J":
                    if n == "2":
                        self.too_wide = 0  # what came before may have been meant for another size
                    else:
                        self.erase(self.y, self.x, self.columns)
                    for y in range(0 if n == "2" else self.y + 1, self.rows):
                        self.erase(y, 0, self.columns)
                elif kind in "hl" and n in ("?1049", "?25"):
                    self.mode(n, kind == "h")
                elif kind != "m" or n.startswith("?"):
                    sys.exit("unknown escape sequence %r" % m.group(0))
                continue
            c = text[i]
            i += 1
            if c == "\r":
                self.x = 0
            elif c == "\n":
                self.y += 1
                if self.y == self.rows:
                    self.cells = self.cells[1:] + [[" "] * self.columns]
                    self.y -= 1
            elif self.x >= self.columns:
                self.too_wide += 1
            else:
                self.cells[self.y][self.x] = c
                self.x += 1

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]

    def read(self, seconds):
        """False when the command has let go of the terminal."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        if not data:
            return False
        self.rest += data
        text = self.rest.decode(errors="ignore")
        if text.encode() == self.rest:
            self.rest = b""
            self.take(text)
        return True

    def wait(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not condition(self):
            if time.monotonic() > end or not self.read(0.1):
                sys.exit("this never came; on the screen:\n" + "\n".join(self.lines()))

    def stop(self):
        """SIGTERM to all of the pipeline (the shell itself lives on); reads to the end.  Returns the exit status."""
        os.killpg(self.process.pid, signal.SIGTERM)
        while self.read(10):
            pass
        return self.process.wait(10)
