# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of faults from public reports; reports.md names the source of each."""

from .scenarios import Scenario

DRIVEN = (("lock-wait peer-wait network-wait", "helper driver"),)
SCANNER = (("peer-wait", "helper"),)
DUMPED = (("peer-wait child-wait own-computation", "~core-handler"),)
KEYRING = (("peer-wait", "~keyring-slow"),)
FROZEN = (("kernel-lock io-held-back peer-wait", "helper thaw ~fsfreeze ~vm-backup ~loop ~disk'"),)
WRITTEN = (("fsync disk-queue io-held-back", "helper ~copy-film ~kworker ~loop"),)
READ = (("disk-queue io-held-back", "any"),)
GIT = (("child-wait", "~git"),)
GIT_COLD = (("child-wait disk-queue io-held-back", "~git ~loop ~tree"),)
SHELL_INIT = (("child-wait peer-wait own-computation", "~conda-like"),)
REMOTE = (("stopped peer-wait", "helper sender driver"),)
PRINTER = (("network-wait peer-wait", "helper driver ~127.0.0.1"),)
HOGGED = (("cpu-competition", "hogs"),)
FORKS = (("timer-sleep", "program ~bash"),)
STOPPED = (("stopped peer-wait", "stopped sender beside"),)
SSH = "ssh -S peer -o ProxyCommand=false host true"
VIM_ICE = "SESSION_MANAGER=local/unix:$HOME/peer vim -u NONE -n note.txt"


def computed(name):
    return (("child-wait peer-wait own-computation timer-sleep", f"~{name}"),)


# Title: program, window manager or compositor, fault, acts, truth, accepted causes, beside.
ROWS = {
    # An open that a scanner must allow.
    "scan-cat": ("xterm", "openbox", "scanner", ("command cat inbox/letter",), "last", SCANNER, ""),
    "scan-emacs": ("emacs", "openbox", "scanner",
                   ("key ctrl+x", "key ctrl+f", "write inbox/letter", "*key Return", "key x"), "after", SCANNER, ""),
    "wl-scan-cat": ("foot", "sway", "scanner computing", ("command cat inbox/letter",), "last", SCANNER, ""),
    # A prompt that asks Git about a large tree.
    "prompt-large": ("xterm-rc", "openbox", "prompt large", ("write cd tree", "key Return", "rest 6", "*key Return"), "last", GIT, ""),
    "prompt-cold": ("xterm-rc", "openbox", "prompt cold", ("command cd tree",), "last", GIT_COLD, ""),
    "prompt-small": ("xterm-rc", "openbox", "prompt small", ("command cd tree",), "last", (), ""),
    # The message bus starts a service that does not get ready.
    "activation": ("xterm", "openbox", "activation 2.4", ("command secret-tool lookup a b",), "last", KEYRING, ""),
    "activation-lasts": ("xterm", "xfwm4", "activation 9", ("command secret-tool lookup a b",), "mark", KEYRING, ""),
    "wl-activation": ("foot", "sway", "activation 2", ("command secret-tool lookup a b",), "last", KEYRING, ""),
    # Written by somebody else, who has ended.
    "eject-sync": ("xterm", "openbox", "eject sync", ("command sync -f disk",), "last", WRITTEN, ""),
    "eject-other": ("xterm", "openbox", "eject sync", ("command sync -f /dev/shm",), "last", (), ""),
    # A passphrase that is asked for elsewhere.
    "passphrase": ("xterm", "openbox", "passphrase",
                   ("write export GPG_TTY={tty}", "key Return", "write gpg -s note.txt", "*key Return"), "last",
                   (("peer-wait", "~pinentry"),), "xterm -name beside -geometry 80x24+740+430 -e sleep 1d"),
    # A frozen file system.
    "frozen-echo": ("xterm", "openbox", "frozen", ("command echo x >> disk/log",), "last", FROZEN, ""),
    "frozen-emacs": ("emacs", "openbox", "frozen", ("key ctrl+x", "key ctrl+f", "write disk/log", "key Return", "write ab",
                     "key ctrl+x", "*key ctrl+s", "key x"), "after", FROZEN, ""),
    "frozen-lasts": ("xterm", "openbox", "frozen", ("command echo x >> disk/log",), "mark", FROZEN, ""),
    "frozen-other": ("xterm", "openbox", "frozen", ("command echo x >> note.txt",), "last", (), ""),
    # A new terminal whose start files take long.
    "tab-tmux": ("tmux-rc", "openbox", "tab", ("key ctrl+b", "*key c"), "last", SHELL_INIT, ""),
    "tab-xfce": ("xfce4-terminal", "openbox", "tab", ("key ctrl+shift+n",), "last:screen", SHELL_INIT, ""),
    "wl-tab-foot": ("foot-rc", "sway", "tab", ("key ctrl+shift+n",), "last", SHELL_INIT, ""),
    # Locks that are files.
    "lockfile-xauth": ("xterm", "openbox", "stale", ("command xauth -f .cookies list",), "last",
                       (("lock-wait timer-sleep", "~xauth ~.cookies"),), ""),
    "lockfile-gpg": ("xterm", "openbox", "claimed", ("command gpg --import key.asc",), "last", (("lock-wait", "helper"),), ""),
    # A client that renames its window.
    "titles-marco": ("mousepad", "marco", "titles", ("drag",), "first:frame",
                     (("own-computation server-busy", "manager beside ~titles"),), "xterm -name beside -geometry 40x10+700+500 -e titles"),
    "titles-metacity": ("mousepad", "metacity", "titles", ("drag",), "first:frame",
                        (("own-computation server-busy", "manager beside ~titles"),),
                        "xterm -name beside -geometry 40x10+700+500 -e titles"),
    # A print server that answers late.
    "print-featherpad": ("featherpad", "openbox", "print", ("key ctrl+p",), "first:screen", PRINTER, ""),
    "print-lpstat": ("xterm", "openbox", "print", ("command lpstat -p",), "last", PRINTER, ""),
    # What shells and pagers run.
    "complete-units": ("xterm-rc", "openbox", "script list-units", ("write control ", "*key Tab"), "first",
                       computed("list-units"), ""),
    "unknown-command": ("xterm-rc", "openbox", "script suggest-package", ("command gti",), "last", computed("suggest-package"), ""),
    "pager-filter": ("xterm", "openbox", "script colourise", ("command LESSOPEN='|colourise %s' less one.log",), "last",
                     computed("colourise"), ""),
    "pager-next": ("xterm-filter", "openbox", "script colourise", ("write :n",), "first", computed("colourise"), ""),
    "git-monitor": ("xterm-rc", "openbox", "script fsmonitor-query", ("command git -C tree status",), "last",
                    computed("fsmonitor-query"), ""),
    "git-emacs": ("emacs", "openbox", "script fsmonitor-query", ("key ctrl+x", "key ctrl+f", "write tree/one.c", "*key Return",
                  "key x"), "after", computed("fsmonitor-query"), ""),
    "escape-time": ("tmux-vim", "openbox", "own 0.5", ("key Escape",), "first", (("timer-sleep peer-wait", "~tmux"),), ""),
    "pipe-menu": ("xterm", "openbox", "script list-windows", ("key ctrl+F9",), "first:screen", computed("list-windows"), ""),
    "forks": ("xterm", "openbox", "tasks", ("command ls /usr",), "last", FORKS, ""),
    "refused": ("xterm", "openbox", "refused", ("write su", "key Return", "rest 1", "write no", "*key Return"), "last",
                (("timer-sleep", "~'su'"),), ""),
    "history": ("xterm-history", "openbox", "remote", ("command true",), "last", REMOTE, ""),
    "sandbox": ("xterm", "openbox", "held fifo", ("command bwrap --dev-bind / / --unshare-pid --proc /proc cat fifo",), "last",
                DRIVEN, ""),
    "search-path": ("xterm", "openbox", "remote", ("write PATH=$PATH:~/remote", "key Return", "write nothing", "*key Return"), "last",
                    REMOTE, ""),
    "disk-free": ("xterm", "openbox", "remote", ("command df",), "last", REMOTE, ""),
    "tmux-source": ("tmux", "openbox", "remote", ("key ctrl+b", "write :source remote/letter", "*key Return", "key x"), "after",
                    REMOTE, ""),
    "prompt-fish": ("xterm-fish", "openbox", "script prompt-state", ("key Return",), "last", computed("prompt-state"), ""),
    "prompt-plain": ("xterm-rc", "openbox", "script prompt-state", ("key Return",), "last", computed("prompt-state"), ""),
    # Services.
    "resolver": ("xterm", "openbox", "held resolver", ("command dig @127.0.0.1 -p {port} +tries=1 name",), "last", PRINTER, ""),
    "busy-server": ("xterm", "openbox", "held busy", ("command curl -s 127.0.0.1:{port}",), "last",
                    (("peer-wait network-wait", "helper driver"),), ""),
    "session-manager": ("xterm", "openbox", "listener session-manager", (f"command {VIM_ICE}",), "last",
                        (*DRIVEN, ("timer-sleep", "program")), ""),
    "ssh-master": ("xterm", "openbox", "listener ssh-master", (f"command {SSH}",), "last", DRIVEN, ""),
    "apt-lock": ("xterm", "openbox", "packages", ("command apt-get autoremove",), "last", (("lock-wait timer-sleep", "helper"),), ""),
    "directory": ("xterm", "openbox", "directory", ("command ls -ld /usr",), "last", DRIVEN, ""),
    "wl-directory": ("foot", "sway", "directory", ("command id",), "last", DRIVEN, ""),
    "wl-notify": ("foot", "sway", "held notifications", ("command notify-send done",), "last", DRIVEN, ""),
    "wl-paste": ("foot", "sway", "selection clipboard", ("command wl-paste",), "last", STOPPED, ""),
    # Opens, volumes, dumps.
    "automount": ("xterm", "openbox", "automount", ("command cd net/share",), "last", SCANNER, ""),
    "file-lease": ("xterm", "openbox", "file-lease", ("command cat shared",), "last", (("lock-wait peer-wait", "helper"),), ""),
    "wl-file-lease": ("foot", "sway", "file-lease", ("command head -1 shared",), "last",
                      (("lock-wait peer-wait", "helper"),), ""),
    "core-dump": ("xterm", "openbox", "core-dump", ("command sh -c 'kill -SEGV $$'",), "last", DUMPED, ""),
    "wl-core-dump": ("foot", "sway", "core-dump", ("command sh -c 'kill -SEGV $$'",), "last", DUMPED, ""),
    "copied-up": ("xterm", "openbox", "layered", ("command echo x >> layers/big",), "last", READ, ""),
    "packed": ("xterm", "openbox", "packed", ("command disk/calculator",), "last", READ, ""),
    # Browsers.
    "page-script": ("chromium", "openbox", "own 2", ("click 0.15 0.18",), "after:bottom",
                    (("own-computation peer-wait", "program"),), ""),
    "page-link": ("chromium", "openbox", "held tcp", ("click 0.85 0.18",), "after", PRINTER, ""),
    # The display.
    "start-stopped-manager": ("xterm", "openbox", "stop manager", ("command featherpad",), "first:screen", STOPPED, ""),
    "start-stopped-xterm": ("xterm", "openbox", "stop manager", ("command xterm",), "first:screen", STOPPED, ""),
    "selection-owner": ("xterm", "openbox", "selection clipboard", ("command xclip -o -selection clipboard",), "last", STOPPED, ""),
    "hot-keys": ("xterm", "openbox", "hot-keys", ("key x",), "first", STOPPED, ""),
    "hot-keys-other": ("xterm", "openbox", "hot-keys", ("key y",), "first", (), ""),
    "font-path": ("xterm", "openbox", "font-path", ("key x",), "first", REMOTE, ""),
    "keymap": ("mousepad", "openbox", "keymap", ("write abc",), "slowest",
               (("own-computation server-busy", "program helper server"),), ""),
    "screen-mirror": ("screen", "openbox", "mirrored", ("command seq 20000",), "last", STOPPED,
                      "xterm -name beside -geometry 40x10+800+500 -e mirror"),
    "wl-weighted": ("foot", "sway", "weighted server", ("write abcdef",), "letters", HOGGED, ""),
    "weighted": ("mousepad", "openbox", "weighted program", ("write abcdef",), "slowest", HOGGED, ""),
}  # fmt: skip

SCENARIOS = tuple(
    Scenario(program, manager, acts=acts, fault=fault, accept=accept, truth=truth, beside=beside, title=title)
    for title, (program, manager, fault, acts, truth, accept, beside) in ROWS.items()
)
