/* What can be captured: sound devices, files, generators; as a list for people and as JSON. */
#ifndef STAGE_DEVICES_H
#define STAGE_DEVICES_H

#include <stdbool.h>

/*
 * Print to stdout.  A server that does not answer has no devices; for people
 * that is said.  Role: io; waits for servers that are slow.
 */
void devices_list(bool json);

#endif
