/* The sound devices that can be named, as a list for people and as JSON. */
#ifndef TOOL_DEVICES_H
#define TOOL_DEVICES_H

#include <stdbool.h>

/*
 * Print to stdout, as JSON the member "devices" of an object alone.  A server that does not answer has no devices; for people
 * that is said.  Role: io; waits for servers that are slow.
 */
void devices_print(bool json);

#endif
