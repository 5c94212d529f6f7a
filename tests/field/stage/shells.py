# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs that shells and pagers run by themselves: prompts, start files, handlers,
preprocessors, hooks; and process limits."""

import os
import time

from . import fault, processes, scripts, volumes
from .fault import Fault
from .scripts import Logged

COMPUTES = 'log("begin"); compute(1.6); log("end")\n'
WAITS = 'log("begin"); time.sleep(1.6); log("end")\n'
# Scripts that wait for others, such as a service manager or a network; the rest compute.
WAITING = ("list-units", "suggest-package", "fsmonitor-query")
RC = "PS1='$ '\n"


def write_home(session, name, text):
    path = session.folder / "home" / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(text)
    return scripts.own(path)


class Tab(Logged):
    """The start files of a new shell evaluate the output of a slow program."""

    @staticmethod
    def prepare(session):
        scripts.write(session, "conda-like", f'{COMPUTES}print("export CONDA=1")\n')
        bin = session.folder / "home/bin"
        write_home(session, ".bashrc", f'{RC}[ -e ~/slow ] && eval "$({bin}/conda-like shell.bash hook)"\n')
        write_home(session, ".bash_profile", ". ~/.bashrc\n")

    def begin(self):
        super().begin()
        write_home(self.session, "slow", "")


class Passphrase(Fault):
    """A tool asks for a passphrase on a terminal below, and waits for the user."""

    HOLD_S = 3.0

    @staticmethod
    def prepare(session):
        folder = session.folder / "home/.gnupg"
        folder.mkdir(mode=0o700)
        scripts.own(folder, 0o700)
        write_home(session, ".gnupg/gpg-agent.conf", "pinentry-program /usr/bin/pinentry-curses\nallow-loopback-pinentry\n")

    def ready(self):
        make = "gpg -q --batch --pinentry-mode loopback --passphrase pw --quick-gen-key test ed25519 sign never"
        scripts.run(["sh", "-c", f"{make} && gpgconf --kill gpg-agent"], self.session)

    def names(self):
        sleeper = fault.child(self.session.roles["beside"], name="sleep")
        return {**super().names(), "tty": os.readlink(f"/proc/{sleeper}/fd/0")}

    def end(self):
        window = self.session.windows.find("beside")
        self.session.input.click(*self.session.windows.place(window).at(0.5, 0.8), expects=False)
        time.sleep(0.3)
        self.session.input.write("pw", expects=False)
        return self.session.input.key("Return", expects=False)


class Script(Tab):
    """A program runs another one that takes long: `script NAME`; the script logs its start and
    end."""

    PARAMETERS = {"name": ""}

    @staticmethod
    def prepare(session, name):
        scripts.write(session, name, (WAITS if name in WAITING else COMPUTES) + OUTPUT.get(name, ""))
        for file, text in HOMES.get(name, {}).items():
            write_home(session, file, text)

    def ready(self):
        if self.name in MAKE:
            scripts.run(["sh", "-c", MAKE[self.name]], self.session)


MAKE = {
    "fsmonitor-query": "git init -q tree && echo 'int one;' > tree/one.c && git -C tree add . "
                       "&& git -C tree config core.fsmonitor fsmonitor-query",
}  # fmt: skip
OUTPUT = {
    "colourise": "print(open(sys.argv[1]).read() if len(sys.argv) > 1 else 'one')\n",
    "fsmonitor-query": "sys.stdout.write('token\\0/\\0')\n",
    "list-units": "print('one.service')\n",
}
ASKED = "[ -e ~/slow ] && prompt-state"
HOMES = {
    "prompt-state": {
        "rc": f"{RC}PROMPT_COMMAND='{ASKED}'\n",
        ".config/fish/config.fish": f"function fish_prompt; {ASKED}; echo '> '; end\n",
    },
    "list-units": {"rc": RC + "_units() { COMPREPLY=($(compgen -W \"$(list-units)\" -- \"$2\")); }\ncomplete -F _units control\n"},
    "fsmonitor-query": {"rc": RC},
    "suggest-package": {"rc": RC + "command_not_found_handle() { suggest-package \"$1\"; echo no such command; }\n"},
    "colourise": {"one.log": "one line\n", "two.log": "another line\n" * 9},
    "list-windows": {
        ".config/openbox/rc.xml": """<openbox_config xmlns="http://openbox.org/3.4/rc"><keyboard><keybind key="C-F9">
<action name="ShowMenu"><menu>windows</menu></action></keybind></keyboard>
<mouse><context name="Client"><mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
</context></mouse><menu><file>menu.xml</file></menu></openbox_config>""",
        ".config/openbox/menu.xml": """<openbox_menu xmlns="http://openbox.org/3.4/menu">
<menu id="windows" label="Windows" execute="list-windows"/></openbox_menu>""",
    },
}
OUTPUT["list-windows"] = (
    "print('<openbox_pipe_menu><item label=\"one\"><action name=\"Reconfigure\"/></item></openbox_pipe_menu>')\n"
)


class Prompt(Fault):
    """Each prompt runs a version control command on a tree, as Git's own prompt does: `prompt
    small`, `prompt cold`."""

    PARAMETERS, HOLD_S, bounded = {"size": "large"}, 3.0, False
    IMAGE, FILES, PER_FOLDER = "/tmp/tipme-field-tree.image", 220_000, 100
    MAKE = """
import os, sys
folder, files, share = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for first in range(0, files, share):
    os.makedirs(f"{folder}/src/{first // 3000}/{first}")
    for number in range(first, min(first + share, files)):
        with open(f"{folder}/src/{first // 3000}/{first}/{number}.c", "w") as file:
            file.write("int one;\\n")
"""

    @staticmethod
    def prepare(session, size="large"):
        write_home(session, "rc", RC + """GIT_PS1_SHOWDIRTYSTATE=1 GIT_PS1_SHOWUNTRACKEDFILES=1
. /usr/lib/git-core/git-sh-prompt
PROMPT_COMMAND="__git_ps1 '' '\\\\\\$ '"
""")  # fmt: skip

    def ready(self):
        self.place = self.session.folder / "home/tree"
        self.place.mkdir()
        if self.size == "small":
            scripts.own(self.place, 0o755)
            self.fill(200)
            return
        new = not os.path.exists(self.IMAGE)
        if new:
            scripts.run(["truncate", "-s", "900M", self.IMAGE], as_user=False)
            scripts.run(["mke2fs", "-q", "-F", "-t", "ext4", "-b", "1024", "-N", "300000", self.IMAGE], as_user=False)
        scripts.run(["mount", "-o", "loop,noatime", self.IMAGE, self.place], as_user=False)
        self.unmounts(self.place, lazily=True)
        scripts.own(self.place, 0o755)
        if new:
            self.fill(self.FILES)

    def settle(self):
        if self.size == "cold":
            volumes.limit(self, "read_iops", 16000)

    def end(self):
        return scripts.until_gone(self.session, "git", quiet_s=0.3)

    def fill(self, files):
        git = f"git -C {self.place}"
        make = f"python3 -c '{self.MAKE}' {self.place} {files} {self.PER_FOLDER}"
        commit = f"{git} -c user.name=a -c user.email=a commit -q -m one"
        process = processes.start(["sh", "-c", f"{make} && {git} init -q && {git} add . && {commit}"], self.session.env)
        if process.wait(timeout=200):
            raise processes.CannotRun("no tree under version control")


class Tasks(Fault):
    """The program's group has reached its process limit, so that the shell keeps retrying to
    fork."""

    HOLD_S, bounded = 2.2, False

    def ready(self):
        self.group = self.grouped("pids", "pids.max", "program")

    def begin(self):
        self.group.set("pids.max", (self.group.path / "pids.current").read_text().strip())

    def end(self):
        self.group.set("pids.max", "max")
        at = processes.now_ns()
        time.sleep(3)
        return at


class Refused(Fault):
    """A wrong password: the program delays its refusal."""

    HOLD_S, bounded = 4.5, False


FAULTS = {
    "tab": Tab, "passphrase": Passphrase, "script": Script, "prompt": Prompt, "tasks": Tasks, "refused": Refused,
}  # fmt: skip
