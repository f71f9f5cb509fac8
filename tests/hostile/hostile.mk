# The flood of bad datagrams.

HOSTILE := $(B)/tests/hostile/flood

$(HOSTILE): tests/hostile/flood.c Makefile
	@mkdir -p $(@D)
	@echo "  CC   $@"
	@$(CC) -std=gnu11 -D_GNU_SOURCE $(OPT_FLAGS) $(WARN) -o $@ $<
