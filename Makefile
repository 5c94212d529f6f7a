# SPDX-License-Identifier: MIT OR Apache-2.0
# What there is to do: `make help`.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PREFIX ?= /usr/local
DESTDIR ?=
TARGET := $(or $(CARGO_TARGET_DIR),target)
TIPME := $(TARGET)/release/tipme
# What works a machine hard is a program of its own; tipme starts it for its verbs.
LAB := $(TARGET)/release/tipme-lab
# Recording needs root; whoever is not root gets there by sudo, with the same PATH and home.
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo -E env "PATH=$(PATH)" "HOME=$(HOME)")
# What root's cargo wrote belongs to the caller again.
GIVE_BACK := $(if $(AS_ROOT),|| status=$$?; sudo chown -R "$$(id -u):$$(id -g)" "$(TARGET)"; exit $${status:-0})

.PHONY: help docs deps bench-deps selftest-deps test-deps build demo selftest test lint install uninstall bench-recorder papers-deps papers check-window check-auto-build check-auto manager-cost-build check-manager vm test-vm measure-vm field-deps field labels replay desktops desktops-deps fuzz fuzz-guided deny advisories licences sbom clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 18

deps: ## install what building and using it need (apt-get, only what is missing)
	@scripts/install-deps

# What the lab of whole desktops needs, for the one that `make test` starts.
XFCE := python3 python3-pil python3-xlib at-spi2-core adwaita-icon-theme xfce4-session xfce4-panel xfce4-settings xfce4-notifyd xfdesktop4 xfwm4

# A notification daemon comes with the tests only: on a desktop that has one, a second may take its place.
# Of systemd, systemd-analyze is wanted, which works without it.
test-deps:
	@scripts/install-deps dbus-daemon dbus-bin dunst notification-daemon mousepad xfwm4 perl xclip chromium systemd sway foot wtype xwayland libglib2.0-bin x11-apps tmux gnome-settings-daemon-common fonts-dejavu-core \
		$(XFCE)

selftest-deps:
	@scripts/install-deps dbus-daemon dbus-bin

bench-deps:
	@scripts/install-deps linux-perf python3 mousepad

build: ## build target/release/tipme and tipme-lab
	cargo build --release

demo: deps build ## a hitch on a private display, diagnosed (under a minute)
	$(AS_ROOT) $(TIPME) demo $(DEMO)

selftest: selftest-deps build ## known faults, each diagnosed and checked; writes the table in docs/results/selftest.md
	@$(AS_ROOT) scripts/mount-kernel-fs
	$(AS_ROOT) scripts/run-selftest $(TIPME) --repeat 5 $(SELFTEST)

# Nothing in the documentation of the crates is to be run, which a rule of tests/tidy holds; so it is not searched for that. What the
# packages hold is built while the tests run, which mostly wait; BESIDE=lint has that done then as well.
test: test-deps deb-deps ## all tests, as root
	cargo test --workspace --tests --no-run
	@$(AS_ROOT) scripts/mount-kernel-fs
	@scripts/beside "make --no-print-directory build $(BESIDE)" $(AS_ROOT) scripts/run-tests $(GIVE_BACK)
	tests/package/run contents $(TIPME)

lint: ## formatting and clippy
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

install: ## install both programs below PREFIX (/usr/local), with services, session agent, man pages and completions
	scripts/install-files "$(TIPME)" "$(PREFIX)" "$(DESTDIR)"
	scripts/install-files "$(LAB)" "$(PREFIX)" "$(DESTDIR)"

uninstall: ## remove what install brought; incidents and settings stay
	scripts/install-files --remove "$(PREFIX)" "$(DESTDIR)"

# In Debian 12 there is no mdbook. It stays below target, so that nothing is installed.
MDBOOK_VERSION := 0.5.4
MDBOOK := $(TARGET)/tools/$(MDBOOK_VERSION)/bin/mdbook
docs: $(MDBOOK) ## the manual as a book: target/book/index.html (builds mdbook the first time)
	scripts/make-book $(MDBOOK) $(TARGET)/book

$(MDBOOK):
	cargo install mdbook --version $(MDBOOK_VERSION) --locked --no-default-features --features search --root $(TARGET)/tools/$(MDBOOK_VERSION)

.PHONY: deb-deps deb check-deb check-deb-vm picture
deb-deps:
	@scripts/install-deps debhelper lintian appstream desktop-file-utils python3

deb: deb-deps build ## Debian packages below target/debian: tipme and tipme-lab, and with their symbols tipme-dbgsym and tipme-lab-dbgsym
	scripts/make-deb $(TIPME) $(TARGET)/debian

check-deb: deb-deps build ## the packages: contents, and their life in a clean Debian 12 (kept below ~/.cache/tipme-package)
	@scripts/install-deps debootstrap
	tests/package/run contents $(TIPME)
	$(AS_ROOT) tests/package/run life $(TIPME)

check-deb-vm: deb ## the package in a guest with systemd, set up and used with a real keyboard (see docs/internals/test-bed.md)
	$(AS_ROOT) tests/vm/run package --deb "$$(ls -t $(TARGET)/debian/tipme_*.deb | head -n 1)" $(VM)

picture: build ## the picture of README.md, made again
	$(AS_ROOT) scripts/make-picture $(TIPME) docs/pictures/verdict.png

bench-recorder: bench-deps build ## cost of recording beside ftrace and perf; writes docs/results/overhead.md
	@$(AS_ROOT) scripts/mount-kernel-fs
	$(AS_ROOT) scripts/bench-recorder --tipme $(TIPME) $(BENCH)

papers-deps:
	@scripts/install-deps python3 mousepad sway foot libreoffice-writer libreoffice-impress libreoffice-gtk3

papers: deps papers-deps build $(if $(or $(filter S5,$(ROWS)),$(if $(ROWS)$(MEASURE),,all)),manager-cost-build) $(if $(filter T11,$(ROWS)),check-auto-build) ## what the four papers measured, beside our figures (50 minutes; ROWS="J1 E6", MEASURE=no, PAPERS=--again; T11 only where it is named); writes docs/papers
	@$(AS_ROOT) scripts/mount-kernel-fs
	$(AS_ROOT) scripts/papers --tipme $(TIPME) $(if $(ROWS),--rows "$(ROWS)") $(if $(MEASURE),--measure $(MEASURE)) $(PAPERS) $(GIVE_BACK)

check-window: build ## whether 40 s fit into 32 MiB and 128 MiB, how fast a mark is and what memory it takes
	@$(AS_ROOT) scripts/mount-kernel-fs
	$(AS_ROOT) scripts/check-window --tipme $(TIPME) --memory 32M --rate 25000
	$(AS_ROOT) scripts/check-window --tipme $(TIPME) --memory 128M --rate 200000
	$(AS_ROOT) scripts/check-window --tipme $(TIPME) --memory 128M --rate 200000 --seconds 100 --full

check-auto-build: build
	@scripts/install-deps mousepad featherpad gnome-text-editor
	cargo build --release -p tipme-bench --bin check-auto

check-auto: check-auto-build ## half an hour of typing at four programs and pointing at a fifth, with hitches: what record --auto marks, misses and costs
	@$(AS_ROOT) scripts/mount-kernel-fs
	$(AS_ROOT) scripts/check-auto $(AUTO)

manager-cost-build:
	cargo test --release -p tipme --test manager_cost --no-run

check-manager: deps manager-cost-build ## how soon the manager's knobs follow the focus, and what it costs
	$(AS_ROOT) scripts/check-manager $(GIVE_BACK)

vm: ## build the virtual test bed below ~/.cache/tipme-vm (see docs/internals/test-bed.md)
	$(AS_ROOT) tests/vm/run build

test-vm: ## the main job in guests with kernel 6.1 and 6.18; writes docs/results/test-bed.md
	PYTHONDONTWRITEBYTECODE=1 python3 -m unittest discover -t tests/vm -s tests/vm/bed
	$(AS_ROOT) tests/vm/run test --tipme $(TIPME) $(VM)

measure-vm: ## what the manager is worth in a guest with little memory (an hour and a quarter), and with either kernel; writes docs/results/test-bed.md
	$(AS_ROOT) tests/vm/run measure --tipme $(TIPME) $(VM)

field-deps:
	@scripts/install-deps openbox xfwm4 marco mate-settings-daemon-common metacity icewm twm xfonts-base xfonts-75dpi kwin-x11 picom xdotool wmctrl xclip dbus dbus-x11 x11-apps \
		python3-xlib python3-tk python3-fuse fuse3 libx11-dev libxext-dev libxdamage-dev fonts-dejavu-core curl sqlite3 \
		mousepad featherpad gnome-text-editor emacs-gtk vim-gtk3 idle tmux screen qterminal pcmanfm thunar chromium firefox-esr \
		libreoffice-writer libreoffice-gtk3 default-jdk python3-dbus at-spi2-core ibus ibus-gtk3 \
		sway foot mutter kwin-wayland qtwayland5 kwrite gdb python3-gi gir1.2-gtk-4.0 python3-pyqt5 \
		git gnupg pinentry-curses libsecret-tools cups-client xfce4-terminal sxhkd openssh-client bubblewrap squashfs-tools \
		wl-clipboard x11-xserver-utils fish bind9-dnsutils

field: field-deps build ## unmodified programs, faults from outside, truth from the screen (an hour); writes docs/results/field.md
	@$(AS_ROOT) scripts/mount-kernel-fs
	-$(AS_ROOT) tests/field/run all --tipme $(TIPME) $(FIELD)
	tests/field/run replay --tipme $(TIPME) --out docs/results/field.md

labels: field-deps build ## what messages of Wayland are taken for, against the protocol; writes docs/results/labels.md
	@$(AS_ROOT) scripts/mount-kernel-fs
	cargo build --release -p tipme-tests --example message-labels
	$(AS_ROOT) tests/field/run labels --tipme $(TIPME) --out docs/results/labels.md $(LABELS)

replay: build ## what the field test kept, diagnosed again (REPLAY="--against OLD" compares)
	tests/field/run replay --tipme $(TIPME) $(REPLAY)

DESKTOPS ?=
desktops-deps:
	@scripts/install-deps $(XFCE) dbus dbus-daemon systemd fonts-dejavu-core xdg-utils mousepad foot \
		xdg-desktop-portal xdg-desktop-portal-gtk \
		mate-session-manager marco mate-panel mate-settings-daemon mate-notification-daemon caja \
		gnome-shell gnome-session gnome-settings-daemon gjs gnome-text-editor xwayland python3-dbus \
		plasma-desktop plasma-workspace-wayland kwin-x11 kwin-wayland qtwayland5 xdg-desktop-portal-kde kwrite \
		cinnamon \
		sway sway-backgrounds swaybg mako-notifier grim

desktops: desktops-deps build ## whole desktops, each from setup to an answered press (a minute each; DESKTOPS="xfce mate" for some, with --pictures for those of docs/pictures/desktops)
	@$(AS_ROOT) scripts/mount-kernel-fs
	$(AS_ROOT) tests/desktops/run --tipme $(TIPME) $(DESKTOPS)

fuzz: ## each decoder with 100,000 mutated inputs, each socket with as many lines (FUZZ="--minutes 60": an hour)
	cargo run --locked --profile fuzz -p tipme-fuzz -- $(FUZZ)
	$(AS_ROOT) env TIPME_LINES=100000 cargo test --release -p tipme --test floods --test helper_sessions --test manage mutated_lines -- --nocapture --test-threads 1 $(GIVE_BACK)

fuzz-guided: ## the decoders guided by coverage, four minutes each (needs cargo-fuzz and a nightly compiler)
	for target in $$(cargo run --locked --profile fuzz -p tipme-fuzz -- --list | cut -d' ' -f1); do \
		TIPME_TARGET=$$target cargo +nightly fuzz run --fuzz-dir fuzz/guided any -- -max_total_time=240; \
	done

deny: ## licences, versions and sources of what is linked in (needs cargo-deny)
	cargo deny --locked check licenses bans sources

advisories: ## known weaknesses of what is linked in (needs cargo-deny; fetches the list of RustSec)
	cargo deny --locked check advisories

licences: ## the licences of what is linked in, with their texts: target/third-party.txt
	PYTHONDONTWRITEBYTECODE=1 scripts/list-licences $(TARGET)/third-party.txt

sbom: ## the software bills of materials, checked: target/sbom/tipme.cdx.json and tipme-lab.cdx.json (needs cargo-cyclonedx)
	PYTHONDONTWRITEBYTECODE=1 scripts/make-sbom tipme $(TARGET)/sbom/tipme.cdx.json
	PYTHONDONTWRITEBYTECODE=1 scripts/make-sbom tipme-lab $(TARGET)/sbom/tipme-lab.cdx.json

clean: ## remove what was built
	cargo clean
