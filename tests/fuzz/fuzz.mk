# Fuzzing.  `make fuzz` searches with libFuzzer (clang), FUZZ_SECONDS for each target; FUZZ="reader ogg" chooses.
# `make check` replays tests/fuzz/corpus, under the address and undefined-behaviour sanitizers where the compiler has them.

FUZZ_TARGETS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ ?= $(FUZZ_TARGETS:fuzz_%=%)
FUZZ_SECONDS ?= 600
FUZZ_REPLAY := $(FUZZ_TARGETS:%=$(B)/tests/fuzz/%)
FUZZ_LIB_SRC := $(filter-out libcore/meter/%,$(LIB_SRC))
FUZZ_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DWEIR_VERSION='"$(VERSION)"' -DWEIR_SANITIZED -Ilibcore -O1 -g -fno-omit-frame-pointer \
	$(filter-out -Werror,$(WARN)) -ffp-contract=off -fno-strict-aliasing -pthread -MMD -MP $(PKG_CFLAGS)
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=undefined

# Asked once, and only when something is built with it.
REPLAY_SAN = $(eval REPLAY_SAN := $(shell echo 'int main(void) { return 0; }' | \
	$(CC) $(SANITIZERS) -x c - -o /dev/null 2>/dev/null && echo '$(SANITIZERS)'))$(REPLAY_SAN)

# In a build with sanitizers the library has them already.
ifeq ($(SAN),)
REPLAY_B   := $(B)/replay
REPLAY_LIB := $(REPLAY_B)/libcore.a
$(REPLAY_B)/%.o: %.c Makefile VERSION
	@mkdir -p $(@D)
	@echo "  CC   $< (replay)"
	@$(CC) $(FUZZ_CFLAGS) $(REPLAY_SAN) $(EXTRA_CFLAGS) -c -o $@ $<
$(REPLAY_LIB): $(FUZZ_LIB_SRC:%.c=$(REPLAY_B)/%.o)
	@echo "  AR   $@"
	@rm -f $@ && $(AR) rcs $@ $^
$(B)/tests/fuzz/%: $(REPLAY_B)/tests/fuzz/%.o $(REPLAY_B)/tests/fuzz/fuzz.o $(REPLAY_B)/tests/fuzz/replay.o $(REPLAY_LIB)
	@mkdir -p $(@D)
	@echo "  LD   $@"
	@$(CC) $(REPLAY_SAN) -pthread -o $@ $^ $(LDLIBS)
-include $(FUZZ_LIB_SRC:%.c=$(REPLAY_B)/%.d) $(wildcard $(REPLAY_B)/tests/fuzz/*.d)
else
$(B)/tests/fuzz/%: $(B)/tests/fuzz/%.o $(B)/tests/fuzz/fuzz.o $(B)/tests/fuzz/replay.o $(LIB)
	@mkdir -p $(@D)
	@echo "  LD   $@"
	@$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)
endif

# ---- searching ----

FUZZ_CC ?= clang
FUZZ_B := build/fuzz
FUZZ_MAX_LEN_reader := 65536
FUZZ_MAX_LEN_packet := 66000
FUZZ_MAX_LEN_argv := 1000
FUZZ_MAX_LEN_receiver := 4096
FUZZ_MAX_LEN := 16384

# One table of the interpolator for all inputs.
$(B)/tests/fuzz/fuzz_receiver $(FUZZ_B)/fuzz_receiver: LDLIBS += -Wl,--wrap=varirate_init

$(FUZZ_B)/%.o: %.c Makefile VERSION
	@mkdir -p $(@D)
	@echo "  CC   $< (fuzz)"
	@$(FUZZ_CC) $(FUZZ_CFLAGS) $(SANITIZERS) -fsanitize=fuzzer-no-link $(EXTRA_CFLAGS) -c -o $@ $<
$(FUZZ_B)/libcore.a: $(FUZZ_LIB_SRC:%.c=$(FUZZ_B)/%.o)
	@rm -f $@ && $(AR) rcs $@ $^
$(FUZZ_B)/fuzz_%: $(FUZZ_B)/tests/fuzz/fuzz_%.o $(FUZZ_B)/tests/fuzz/fuzz.o $(FUZZ_B)/libcore.a
	@echo "  LD   $@"
	@$(FUZZ_CC) $(SANITIZERS) -fsanitize=fuzzer -pthread -o $@ $^ $(LDLIBS)
-include $(FUZZ_LIB_SRC:%.c=$(FUZZ_B)/%.d) $(wildcard $(FUZZ_B)/tests/fuzz/*.d)

FUZZ_DICT = $(wildcard tests/fuzz/$*.dict)
.PHONY: $(FUZZ:%=fuzz-%)
fuzz: $(FUZZ:%=fuzz-%)

# What is new stays in build/fuzz/found-TARGET and serves the next run; a finding in build/fuzz/TARGET-crash-….
$(FUZZ:%=fuzz-%): fuzz-%: $(FUZZ_B)/fuzz_%
	@mkdir -p $(FUZZ_B)/found-$*
	$(FUZZ_B)/fuzz_$* -max_total_time=$(FUZZ_SECONDS) -max_len=$(or $(FUZZ_MAX_LEN_$*),$(FUZZ_MAX_LEN)) -timeout=20 \
		-rss_limit_mb=2048 -print_final_stats=1 -verbosity=1 $(FUZZ_DICT:%=-dict=%) -artifact_prefix=$(FUZZ_B)/$*- \
		$(FUZZ_B)/found-$* tests/fuzz/corpus/fuzz_$*
