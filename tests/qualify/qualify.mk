# make qualify [MINUTES=30] [QUALIFY="--transport bulk"]: 32 channels of audio beside 1080p60, measured; writes tests/qualify/REPORT.md.

QUALIFY_LOAD := $(B)/tests/qualify/load

$(B)/tests/qualify/load.o: EXTRA_CFLAGS = -O3

$(QUALIFY_LOAD): $(B)/tests/qualify/load.o $(LIB)
	@mkdir -p $(@D)
	@echo "  LD   $@"
	@$(CC) $(ALL_LDFLAGS) -o $@ $< $(LIB) $(LDLIBS)

MINUTES ?= 30
qualify: all $(QUALIFY_LOAD)
	@$${PYTHON:-/usr/bin/python3} tests/qualify/qualify.py --minutes $(MINUTES) --report tests/qualify/REPORT.md $(B) $(QUALIFY)

TEST_PROGRAMS += $(QUALIFY_LOAD)
