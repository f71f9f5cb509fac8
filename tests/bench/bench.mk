# make bench [BENCH="--rounds 3 copy"]: ours and the installed peers, side by side.

$(B)/tests/bench/floor: tests/bench/floor.c Makefile
	@mkdir -p $(@D)
	@echo "  CC   $@"
	@$(CC) -O2 -o $@ $< $(PKG_CFLAGS) $(PKG_LIBS) -lm

bench: all $(B)/tests/bench/floor $(KERNELS)
	@$${PYTHON:-/usr/bin/python3} tests/bench/bench.py $(B) $(BENCH)
