/*
 * A JACK client that plays its own frame numbers: counter CHANNELS.  Each channel carries the server's frame counter as
 * gen:count does (24 bits of it, as (n & 0xFFFFFF) / 2^23 - 1), so that whoever records can tell which frame is which.
 * Runs until it is ended.
 */
#include <jack/jack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_CHANNELS 64
#define MAX_FRAMES 8192

struct counter {
	jack_client_t *client;
	jack_port_t *ports[MAX_CHANNELS];
	int n;
	float numbers[MAX_FRAMES];
};

static int on_cycle(jack_nframes_t n_frames, void *user)
{
	struct counter *c = user;
	jack_nframes_t at = jack_last_frame_time(c->client);

	for (jack_nframes_t i = 0; i < n_frames && i < MAX_FRAMES; i++)
		c->numbers[i] = (float)((at + i) & 0xFFFFFF) / 8388608.0f - 1;
	for (int k = 0; k < c->n; k++)
		memcpy(jack_port_get_buffer(c->ports[k], n_frames), c->numbers, n_frames * sizeof(float));
	return 0;
}

int main(int argc, char **argv)
{
	static struct counter c;

	if (argc != 2 || (c.n = atoi(argv[1])) < 1 || c.n > MAX_CHANNELS)
		return 2;
	c.client = jack_client_open("counter", JackNoStartServer, NULL);
	if (!c.client)
		return 1;
	for (int k = 0; k < c.n; k++) {
		char name[16];

		snprintf(name, sizeof(name), "out_%d", k + 1);
		c.ports[k] = jack_port_register(c.client, name, JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0);
		if (!c.ports[k])
			return 1;
	}
	jack_set_process_callback(c.client, on_cycle, &c);
	if (jack_activate(c.client))
		return 1;
	for (;;)
		pause();
}
