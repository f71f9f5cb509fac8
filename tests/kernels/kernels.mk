# The kernels' checker and benchmark.  check_kernels runs it as a test; --bench is for people and `make bench`.

KERNELS     := $(B)/tests/kernels/kernels
KERNELS_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard tests/kernels/*.c))

$(KERNELS): $(KERNELS_OBJ) $(LIB)
	@mkdir -p $(@D)
	@echo "  LD   $@"
	@$(CC) $(ALL_LDFLAGS) -o $@ $(KERNELS_OBJ) $(LIB) $(LDLIBS)

-include $(KERNELS_OBJ:.o=.d)
