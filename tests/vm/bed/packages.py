# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian packages, fetched with apt into folders of their own and unpacked without being installed.

The machine's own lists, archives and installed packages stay as they are. The mirror is that of the
machine's own sources, unless TIPME_VM_MIRROR names another.
"""

import os
import pathlib
import re
import subprocess

from .places import CannotRun, cache, digest, made_whole, run, say

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# What the build itself needs on this machine: program and the package that has it.
TOOLS = {
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "mkswap": "util-linux",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "xz": "xz-utils",
    "depmod": "kmod",
}

CONFIGURATION = """\
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Dir::Etc::SourceList "{folder}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
APT::Architecture "amd64";
APT::Architectures {{ "amd64"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "root";
APT::Get::Assume-Yes "true";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
"""


def install_tools():
    """Installs what the build needs and the machine lacks, and says so."""
    missing = sorted({package for program, package in TOOLS.items() if not is_there(program)})
    if not os.path.exists(KEYRING):
        missing.append("debian-archive-keyring")
    if not missing:
        return
    if os.geteuid() != 0:
        raise CannotRun(f"missing: {' '.join(missing)}; install them, or run make vm as root")
    say(f"installing on this machine with apt-get: {' '.join(missing)}")
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    run(["apt-get", "update", "-q"], env=environment)
    options = ["-q", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=600"]
    run(["apt-get", "install", *options, *missing], env=environment)


def is_there(program):
    places = [*os.environ.get("PATH", "").split(":"), "/usr/sbin", "/sbin"]
    return any(os.access(os.path.join(place, program), os.X_OK) for place in places)


def mirror():
    """The mirror that the machine's own sources name."""
    named = os.environ.get("TIPME_VM_MIRROR")
    if named:
        return named
    listed = run(["apt-get", "indextargets", "--format", "$(SITE) $(ORIGIN) $(LABEL) $(COMPONENT)"])
    for line in listed.splitlines():
        site, *rest = line.split()
        if rest == ["Debian", "Debian", "main"]:
            return site
    return mirror_of_sources()


def mirror_of_sources():
    """The same from the text of the sources, where no lists were fetched yet."""
    folder = pathlib.Path("/etc/apt")
    for path in sorted([folder / "sources.list", *folder.glob("sources.list.d/*")]):
        text = path.read_text() if path.is_file() else ""
        found = re.search(r"^(?:URIs:|deb(?: \[[^]]*\])?)\s+(\S+/debian)/?(?:\s|$)", text, re.MULTILINE)
        if found:
            return found[1]
    raise CannotRun("this machine's sources name no Debian mirror; name one in TIPME_VM_MIRROR")


def source_line(suite):
    return f"deb [signed-by={KEYRING}] {mirror()} {suite} main"


class Apt:
    """apt for some suites, with lists, archives and status in a folder of the cache."""

    def __init__(self, suites):
        self.suites = suites
        self.folder = cache() / f"apt-{suites[-1]}"
        self.configuration = self.folder / "apt.conf"

    def update(self):
        """Writes the configuration and fetches the lists."""
        for name in ("state/lists/partial", "cache/archives/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        (self.folder / "sources.list").write_text("".join(f"{source_line(suite)}\n" for suite in self.suites))
        self.configuration.write_text(CONFIGURATION.format(folder=self.folder))
        say(f"fetching package lists: {' '.join(self.suites)}")
        run(["apt-get", "-c", self.configuration, "-q", "update"])

    def names(self, prefix):
        return run(["apt-cache", "-c", self.configuration, "pkgnames", prefix]).split()

    def version(self, package):
        """The version that would be taken, or None."""
        command = ["apt-cache", "-c", self.configuration, "-t", self.suites[-1], "policy", package]
        found = re.search(r"Candidate: (\S+)", run(command))
        return found[1] if found and found[1] != "(none)" else None

    def download(self, packages, whole):
        """Archives of packages; with `whole` those of everything that they depend on too."""
        command = ["apt-get", "-c", self.configuration, "-q", "-t", self.suites[-1]]
        archives = self.folder / "cache/archives"
        # Archives of an earlier, interrupted run would be missing in the list.
        for old in archives.glob("*.deb"):
            old.unlink()
        listed = [*command, "--print-uris", *(["install"] if whole else ["download"]), *packages]
        names = [line.split()[1] for line in run(listed).splitlines() if line.startswith("'")]
        if whole:
            run([*command, "--download-only", "install", *packages])
        else:
            run([*command, "download", *packages], cwd=archives)
        return [archives / name for name in names]


def newest(names):
    """The name with the highest numbers in it."""
    return max(names, key=lambda name: [int(number) for number in re.findall(r"\d+", name)], default=None)


def unpack(archive, folder, leave_out=()):
    """Unpacks an archive's files, without those that match a pattern."""
    pack = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(archive)], stdout=subprocess.PIPE)
    exclude = [f"--exclude={pattern}" for pattern in leave_out]
    try:
        command = ["tar", "-x", "--no-same-owner", "--wildcards", *exclude, "-C", str(folder)]
        subprocess.run(command, stdin=pack.stdout, check=True, timeout=600)
        if pack.wait(timeout=60) != 0:
            raise CannotRun(f"cannot unpack {archive}: it is damaged; remove it")
    finally:
        pack.kill()
        pack.wait()


def qemu(suites=("bookworm", "bookworm-backports")):
    """QEMU with all libraries that it uses, in a folder of the cache."""
    folder = cache() / f"qemu-{digest(suites)}"
    if folder.is_dir():
        return folder
    apt = Apt(suites)
    apt.update()
    archives = apt.download(["qemu-system-x86"], whole=True)
    say(f"unpacking QEMU {apt.version('qemu-system-x86')} ({len(archives)} archives)")
    with made_whole(folder) as partial:
        for archive in archives:
            unpack(archive, partial, ["./usr/share/doc", "./usr/share/locale", "./usr/share/man"])
            archive.unlink()
    return folder
