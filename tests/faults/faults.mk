# The preload that makes calls fail.

FAULTS := $(B)/tests/faults/fault.so

$(FAULTS): tests/faults/fault.c Makefile
	@mkdir -p $(@D)
	@echo "  CC   $@"
	@$(CC) -std=gnu11 -D_GNU_SOURCE $(OPT_FLAGS) $(filter-out -Wmissing-prototypes,$(WARN)) -fPIC -shared -fno-builtin \
		-U_FORTIFY_SOURCE $(if $(SAN),-DWEIR_SANITIZED) -o $@ $< -ldl
