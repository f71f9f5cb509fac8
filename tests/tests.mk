# The tests: `make check` builds and runs them all, `make fuzz` searches for new findings.  CONTRIBUTING.md says where a test goes.

TEST_UNIT := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(wildcard tests/unit/test_*.c))

$(B)/tests/%.o: EXTRA_CFLAGS = -Itests

$(B)/tests/unit/%: $(B)/tests/unit/%.o $(LIB)
	@mkdir -p $(@D)
	@echo "  LD   $@"
	@$(CC) $(ALL_LDFLAGS) -o $@ $< $(LIB) $(LDLIBS)

# The meter's reference, where it is installed; the test skips with a reason where not.
EBUR128 := $(shell $(PKG_CONFIG) --exists libebur128 2>/dev/null && echo yes)
ifeq ($(EBUR128),yes)
$(B)/tests/unit/test_meter_ebur128.o: EXTRA_CFLAGS = -Itests -DHAVE_EBUR128 $(shell $(PKG_CONFIG) --cflags libebur128)
$(B)/tests/unit/test_meter_ebur128: LDLIBS += $(shell $(PKG_CONFIG) --libs libebur128)
endif

-include tests/kernels/kernels.mk
-include tests/bench/bench.mk
-include tests/faults/faults.mk
-include tests/hostile/hostile.mk
-include tests/fuzz/fuzz.mk

# Everything tests/run runs or needs, but for the tools themselves.
TEST_PROGRAMS := $(TEST_UNIT) $(KERNELS) $(FAULTS) $(HOSTILE) $(FUZZ_REPLAY)
-include tests/qualify/qualify.mk

.PHONY: tests
tests: all $(TEST_PROGRAMS)

# make check [TESTS="unit/ pipeline/0100"] [JOBS=3]
check: tests
	@B=$(B) SAN=$(SAN) MAKE="$(MAKE)" CC="$(CC)" tests/run $(if $(JOBS),-j $(JOBS)) $(TESTS)

-include $(TEST_UNIT:=.d)
