/* The half of wake that a deadline thread may call. */
#include "rt/wake.h"

WEIR_DEADLINE void wake_post(struct wake *w)
{
	(void)sem_post(&w->sem);
}
