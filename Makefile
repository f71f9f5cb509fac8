# weir: one Makefile, not recursive.  `make help` lists what it can do.

VERSION := $(shell cat VERSION)
CC      ?= cc
AR      ?= ar
PKG_CONFIG ?= pkg-config

prefix      ?= /usr/local
bindir      ?= $(prefix)/bin
libexecdir  ?= $(prefix)/libexec
mandir      ?= $(prefix)/share/man
bashcompdir ?= $(prefix)/share/bash-completion/completions
zshcompdir  ?= $(prefix)/share/zsh/site-functions
fishcompdir ?= $(prefix)/share/fish/vendor_completions.d
docdir      ?= $(prefix)/share/doc/weir
execdir     ?= $(libexecdir)/weir

# make SAN=asan,ubsan builds beside the plain build, never over it.
comma := ,
SAN ?=
ifneq ($(SAN),)
B := build/$(subst $(comma),-,$(SAN))
SAN_FLAGS := $(foreach s,$(subst $(comma), ,$(SAN)),$(if $(filter asan,$s),-fsanitize=address,$(if $(filter ubsan,$s),-fsanitize=undefined -fno-sanitize-recover=undefined,$(if $(filter tsan,$s),-fsanitize=thread,$(error SAN=$s: asan, ubsan or tsan))))) -fno-omit-frame-pointer -DWEIR_SANITIZED
else
B := build
HARDEN := -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection
endif

LIBS_PKG := sndfile opus ogg vorbisfile soxr flac libmpg123 libsrtp2 libsodium nettle
DEPS_DEBIAN := gcc libc6-dev make pkg-config libsndfile1-dev libopus-dev libogg-dev libvorbis-dev libsoxr-dev libflac-dev libmpg123-dev libsrtp2-dev libsodium-dev nettle-dev libcairo2-dev
# With these the sound devices, Matroska and the finding of peers are built; without them everything else is.
DEPS_DEBIAN_DEVICES := libjack-jackd2-dev libpulse-dev libpipewire-0.3-dev libasound2-dev libavformat-dev libavahi-client-dev
DEPS_DEBIAN_CHECK := clang libclang-rt-14-dev ffmpeg sox libsox-fmt-mp3 flac opus-tools libopusfile-dev libebur128-dev mandoc \
	jackd2 pulseaudio pulseaudio-utils pipewire pipewire-bin wireplumber alsa-utils libasound2-plugins \
	valgrind strace python3-minimal python3-numpy zsh fish bash-completion util-linux vorbis-tools lame file locales \
	iproute2 gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-libav avahi-daemon dbus mkvtoolnix

-include config.mak

WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wvla \
	-Wpointer-arith -Wwrite-strings -Wundef -Wformat=2 -Wimplicit-fallthrough
OPT_FLAGS ?= -O2 -g
CFLAGS ?= $(OPT_FLAGS)
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(LIBS_PKG) 2>/dev/null)
# Optional: meter's pictures.  Only its headers are wanted: the library is loaded when a picture is asked for.  make CAIRO=no: without.
CAIRO ?= $(shell $(PKG_CONFIG) --exists cairo 2>/dev/null && echo yes)
ifeq ($(CAIRO),yes)
PKG_CFLAGS += -DHAVE_CAIRO $(shell $(PKG_CONFIG) --cflags cairo)
endif
# Optional: sound devices, likewise.  make JACK=no PULSE=no PIPEWIRE=no ALSA=no: without.
JACK     ?= $(shell $(PKG_CONFIG) --exists jack 2>/dev/null && echo yes)
PULSE    ?= $(shell $(PKG_CONFIG) --exists libpulse 2>/dev/null && echo yes)
PIPEWIRE ?= $(shell $(PKG_CONFIG) --exists libpipewire-0.3 2>/dev/null && echo yes)
ALSA     ?= $(shell $(PKG_CONFIG) --exists alsa 2>/dev/null && echo yes)
ifeq ($(JACK),yes)
PKG_CFLAGS += -DWEIR_HAVE_JACK $(shell $(PKG_CONFIG) --cflags jack)
else
LIB_WITHOUT += libcore/media/jack.c
endif
ifeq ($(PULSE),yes)
PKG_CFLAGS += -DWEIR_HAVE_PULSE $(shell $(PKG_CONFIG) --cflags libpulse)
else
LIB_WITHOUT += libcore/media/pulse.c
endif
ifeq ($(PIPEWIRE),yes)
PKG_CFLAGS += -DWEIR_HAVE_PIPEWIRE $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags libpipewire-0.3))
else
LIB_WITHOUT += libcore/media/pipewire.c
endif
ifeq ($(ALSA),yes)
PKG_CFLAGS += -DWEIR_HAVE_ALSA $(shell $(PKG_CONFIG) --cflags alsa)
else
LIB_WITHOUT += libcore/media/alsa.c
endif
# Optional: Matroska files, and the finding of peers on the local network; loaded when they are asked for.  make AVFORMAT=no AVAHI=no: without.
AVFORMAT ?= $(shell $(PKG_CONFIG) --exists libavformat 2>/dev/null && echo yes)
AVAHI    ?= $(shell $(PKG_CONFIG) --exists avahi-client 2>/dev/null && echo yes)
ifeq ($(AVFORMAT),yes)
PKG_CFLAGS += -DWEIR_HAVE_AVFORMAT $(shell $(PKG_CONFIG) --cflags libavformat)
else
LIB_WITHOUT += libcore/media/avformat.c
endif
ifeq ($(AVAHI),yes)
PKG_CFLAGS += -DWEIR_HAVE_AVAHI $(shell $(PKG_CONFIG) --cflags avahi-client)
else
LIB_WITHOUT += libcore/media/avahi.c
endif
PKG_LIBS   := $(shell $(PKG_CONFIG) --libs $(LIBS_PKG) 2>/dev/null)
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DWEIR_VERSION='"$(VERSION)"' -Ilibcore $(CFLAGS) $(WARN) $(HARDEN) $(SAN_FLAGS) \
	-fPIE -ffp-contract=off -fno-strict-aliasing -pthread -MMD -MP $(PKG_CFLAGS)
ALL_LDFLAGS = $(LDFLAGS) $(SAN_FLAGS) -pie -Wl,-z,relro,-z,now -Wl,--as-needed -pthread
LDLIBS = $(PKG_LIBS) -lm

ARCH := $(shell $(CC) -dumpmachine 2>/dev/null | cut -d- -f1)
LIB_SRC := $(filter-out $(LIB_WITHOUT),$(wildcard libcore/*/*.c))
ifneq ($(ARCH),x86_64)
LIB_SRC := $(filter-out %_avx2.c %_sse2.c %_sse42.c,$(LIB_SRC))
endif
ifneq ($(ARCH),aarch64)
LIB_SRC := $(filter-out %_neon.c %_armv8.c,$(LIB_SRC))
endif
LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)
LIB     := $(B)/libcore.a
TOOLS   := $(patsubst cmd/%.c,%,$(wildcard cmd/*.c))
BINS    := $(TOOLS:%=$(B)/bin/%)

.DEFAULT_GOAL := all
.PHONY: all deps deps-check check lint fuzz bench demo picture install uninstall dist clean help completions qualify FORCE
.SECONDARY:

all: $(BINS)

help:
	@echo "make [all]       build the tools into $(B)/bin"
	@echo "make deps        install what the build needs (Debian, Ubuntu); elsewhere print the list"
	@echo "make deps-check  the same, with what the tests need"
	@echo "make check       run every test; ends in 'N passed, N failed, N skipped'"
	@echo "make lint fuzz bench demo install uninstall dist clean"
	@echo "make SAN=asan,ubsan    a build with sanitizers, in $(B)/asan-ubsan"

$(B)/%.o: %.c Makefile VERSION
	@mkdir -p $(@D)
	@echo "  CC   $<"
	@$(CC) $(ALL_CFLAGS) $(EXTRA_CFLAGS) -c -o $@ $<

%_avx2.o:  EXTRA_CFLAGS = -mavx2 -mfma
%_sse42.o: EXTRA_CFLAGS = -msse4.2
%_armv8.o: EXTRA_CFLAGS = -march=armv8-a+crc

# A source that came or went makes the library anew, whatever its object's age.
$(shell mkdir -p $(B) && echo '$(LIB_OBJ)' | cmp -s - $(B)/objects || echo '$(LIB_OBJ)' >$(B)/objects)

$(LIB): $(LIB_OBJ) $(B)/objects
	@echo "  AR   $@"
	@rm -f $@ && $(AR) rcs $@ $(LIB_OBJ)

$(B)/bin/%: $(B)/cmd/%.o $(LIB)
	@mkdir -p $(@D)
	@echo "  LD   $@"
	@$(CC) $(ALL_LDFLAGS) -o $@ $< $(LIB) $(LDLIBS)

include tests/tests.mk

# deps: what is missing from the distribution, and nothing else.
define install_packages
	@if command -v apt-get >/dev/null 2>&1; then \
		missing=; for p in $(1); do dpkg -s $$p >/dev/null 2>&1 || missing="$$missing $$p"; done; \
		[ -n "$$missing" ] || { echo "deps: nothing is missing"; exit 0; }; \
		sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
		echo "deps: installing$$missing"; \
		$$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends $$missing; \
	else \
		echo "deps: this is not Debian or Ubuntu; install what these packages hold, then run make:"; \
		for p in $(1); do echo "  $$p"; done; exit 1; \
	fi
endef

deps:
	$(call install_packages,$(DEPS_DEBIAN))

deps-check:
	$(call install_packages,$(DEPS_DEBIAN) $(DEPS_DEBIAN_DEVICES) $(DEPS_DEBIAN_CHECK))

clean:
	rm -rf build

# The dispatcher knows where the tools and the pages are installed; it is built again when that changes.
$(B)/cmd/weir.o: EXTRA_CFLAGS = -DWEIR_BINDIR='"$(bindir)"' -DWEIR_EXECDIR='"$(execdir)"' -DWEIR_MANDIR='"$(mandir)"'
$(B)/cmd/weir.o: $(B)/folders
$(B)/folders: FORCE
	@mkdir -p $(@D)
	@echo '$(bindir) $(execdir) $(mandir)' | cmp -s - $@ || echo '$(bindir) $(execdir) $(mandir)' >$@

# Which devices are in is known in one object; it is built again when that changes.
$(B)/libcore/media/live.o: $(B)/devices
$(B)/devices: FORCE
	@mkdir -p $(@D)
	@echo 'jack=$(JACK) pulse=$(PULSE) pipewire=$(PIPEWIRE) alsa=$(ALSA)' | cmp -s - $@ || echo 'jack=$(JACK) pulse=$(PULSE) pipewire=$(PIPEWIRE) alsa=$(ALSA)' >$@

# install: the dispatcher where people find it, the tools where nobody's `play` or `mix` is shadowed.
INSTALL ?= install
PAGES := $(wildcard man/*.[157])

install: all
	$(INSTALL) -d $(DESTDIR)$(bindir) $(DESTDIR)$(execdir) $(DESTDIR)$(docdir) \
		$(DESTDIR)$(mandir)/man1 $(DESTDIR)$(mandir)/man5 $(DESTDIR)$(mandir)/man7 \
		$(DESTDIR)$(bashcompdir) $(DESTDIR)$(zshcompdir) $(DESTDIR)$(fishcompdir)
	$(INSTALL) -m 755 $(B)/bin/weir $(DESTDIR)$(bindir)/weir
	for t in $(filter-out weir,$(TOOLS)); do $(INSTALL) -m 755 $(B)/bin/$$t $(DESTDIR)$(execdir)/$$t || exit 1; done
	for p in $(PAGES); do $(INSTALL) -m 644 $$p $(DESTDIR)$(mandir)/man$${p##*.}/ || exit 1; done
	$(INSTALL) -m 644 completions/weir.bash $(DESTDIR)$(bashcompdir)/weir
	$(INSTALL) -m 644 completions/_weir $(DESTDIR)$(zshcompdir)/_weir
	$(INSTALL) -m 644 completions/weir.fish $(DESTDIR)$(fishcompdir)/weir.fish
	$(INSTALL) -m 644 README.md NEWS LICENSE $(DESTDIR)$(docdir)

uninstall:
	rm -f $(DESTDIR)$(bindir)/weir $(foreach t,$(filter-out weir,$(TOOLS)),$(DESTDIR)$(execdir)/$(t))
	rm -f $(foreach p,$(PAGES),$(DESTDIR)$(mandir)/man$(subst .,,$(suffix $(p)))/$(notdir $(p)))
	rm -f $(DESTDIR)$(bashcompdir)/weir $(DESTDIR)$(zshcompdir)/_weir $(DESTDIR)$(fishcompdir)/weir.fish
	rm -f $(foreach f,README.md NEWS LICENSE,$(DESTDIR)$(docdir)/$(f))
	for d in $(execdir) $(docdir); do rmdir $(DESTDIR)$$d 2>/dev/null || :; done

# dist: what is committed, as a tarball that builds without git.
dist:
	@mkdir -p build
	git archive --prefix=weir-$(VERSION)/ --output=build/weir-$(VERSION).tar.gz HEAD
	@echo build/weir-$(VERSION).tar.gz

# demo: the main job on audio made here, or on yours: make demo SONG=FILE.
demo: all
	@BIN=$(B)/bin CC="$(CC)" SONG="$(SONG)" OUT=$(B)/demo sh tests/demo/demo.sh

# picture: man/meter-plot.png, which the README shows.
picture: all
	@BIN=$(B)/bin CC="$(CC)" OUT=$(B)/demo sh tests/demo/picture.sh man/meter-plot.png

# completions: from the option tables of the tools.
completions: all
	sh completions/generate.sh $(B)/bin completions

lint: all
	@B=$(B) CC="$(CC)" tests/run lint/

-include $(LIB_OBJ:.o=.d) $(TOOLS:%=$(B)/cmd/%.d)

# What a variable holds: make print-ALL_CFLAGS
print-%:
	@echo '$(subst ','\'',$($*))'
