# The checker of the kernels, run by `make check`; with --bench it times them instead.

KERNELS     := $(B)/tests/kernels/kernels
KERNELS_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard tests/kernels/*.c))

$(KERNELS): $(KERNELS_OBJ) $(LIB)
	@mkdir -p $(@D)
	@echo "  LD   $@"
	@$(CC) $(ALL_LDFLAGS) -o $@ $(KERNELS_OBJ) $(LIB) $(LDLIBS)

-include $(KERNELS_OBJ:.o=.d)
