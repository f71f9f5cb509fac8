# make bench [BENCH="--rounds 3 copy"]: ours and the installed peers, side by side.

$(B)/tests/bench/floor: tests/bench/floor.c Makefile
	@mkdir -p $(@D)
	@echo "  CC   $@"
	@$(CC) -O2 -o $@ $< $(PKG_CFLAGS) $(PKG_LIBS) -lm

$(B)/tests/bench/losses: tests/bench/losses.c tests/unit/loss_model.h $(LIB) Makefile
	@mkdir -p $(@D)
	@echo "  CC   $@"
	@$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $< $(LIB) $(LDLIBS)

$(B)/tests/bench/jitter.o: EXTRA_CFLAGS = -Itests

$(B)/tests/bench/jitter: $(B)/tests/bench/jitter.o $(LIB)
	@mkdir -p $(@D)
	@echo "  LD   $@"
	@$(CC) $(ALL_LDFLAGS) -o $@ $< $(LIB) $(LDLIBS)

bench: all $(B)/tests/bench/jitter $(B)/tests/bench/floor $(B)/tests/bench/losses $(KERNELS)
	@$${PYTHON:-/usr/bin/python3} tests/bench/bench.py $(B) $(BENCH)
