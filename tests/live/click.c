/*
 * A JACK client that sends clicks out of one port and hears them come back on another: how many frames lie between.
 *
 *	click COUNT EVERY_FRAMES [coded]
 *
 * Waits until both ports are connected and for a second more, sends COUNT clicks, and prints a line each: the frames it
 * took, or "lost" when a click was not back before the next went out.  A click is 32 samples of one height, another each
 * time, so that an old one is not taken for a new one; its height is seen in its middle, also where it was resampled.
 * With `coded` its shape may have suffered: what rises over half its height, after it went out, is it.
 */
#include <jack/jack.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_CLICKS 10000
#define STEPS 16
#define CLICK_FRAMES 32
#define EDGE 0.12f
#define ALIKE 0.01f

struct click {
	jack_client_t *client;
	jack_port_t *out, *in;
	unsigned count, every_frames;
	int coded;
	long wait_frames, next_frames;
	unsigned n;                 /* sent */
	jack_nframes_t sent_at;
	unsigned inside_frames;     /* of the one that comes in */
	jack_nframes_t edge_at;
	int delays[MAX_CLICKS];     /* -1: not back */
	atomic_bool done;
};

static float height(unsigned n)
{
	return 0.25f + 0.5f * (float)(n % STEPS) / STEPS;
}

static int on_cycle(jack_nframes_t n_frames, void *user)
{
	struct click *c = user;
	float *out = jack_port_get_buffer(c->out, n_frames);
	const float *in = jack_port_get_buffer(c->in, n_frames);
	jack_nframes_t now = jack_last_frame_time(c->client);

	for (jack_nframes_t i = 0; i < n_frames; i++) {
		out[i] = 0;
		if (in[i] < (c->coded && c->n ? height(c->n - 1) / 2 : EDGE)) {
			c->inside_frames = 0;
			continue;
		}
		if (!c->inside_frames++)
			c->edge_at = now + i;
		if (c->coded && c->n && c->delays[c->n - 1] < 0)
			c->delays[c->n - 1] = (int)(c->edge_at - c->sent_at);
		if (c->inside_frames != CLICK_FRAMES / 2 || !c->n || c->delays[c->n - 1] >= 0)
			continue;
		float off = in[i] - height(c->n - 1);
		if (off < ALIKE && off > -ALIKE)
			c->delays[c->n - 1] = (int)(c->edge_at - c->sent_at);
	}
	if (jack_port_connected(c->out) <= 0 || jack_port_connected(c->in) <= 0 || atomic_load(&c->done))
		return 0;
	c->next_frames -= n_frames;
	if (c->next_frames > 0)
		return 0;
	if (c->n == c->count) {
		atomic_store(&c->done, 1);
		return 0;
	}
	c->delays[c->n] = -1;
	c->sent_at = now;
	for (unsigned i = 0; i < CLICK_FRAMES; i++)
		out[i] = height(c->n);
	c->n++;
	c->next_frames = c->every_frames;
	return 0;
}

int main(int argc, char **argv)
{
	static struct click c;

	if (argc == 4 && !strcmp(argv[3], "coded"))
		c.coded = 1;
	if (argc != 3 + c.coded || (c.count = (unsigned)atoi(argv[1])) < 1 || c.count > MAX_CLICKS || (c.every_frames = (unsigned)atoi(argv[2])) < 64)
		return 2;
	c.client = jack_client_open("click", JackNoStartServer, NULL);
	if (!c.client)
		return 1;
	c.next_frames = (long)jack_get_sample_rate(c.client);
	c.out = jack_port_register(c.client, "out", JACK_DEFAULT_AUDIO_TYPE, JackPortIsOutput, 0);
	c.in = jack_port_register(c.client, "in", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0);
	jack_set_process_callback(c.client, on_cycle, &c);
	if (!c.out || !c.in || jack_activate(c.client))
		return 1;
	while (!atomic_load(&c.done))
		usleep(10000);
	jack_client_close(c.client);
	for (unsigned i = 0; i < c.count; i++) {
		if (c.delays[i] < 0)
			printf("lost\n");
		else
			printf("%d\n", c.delays[i]);
	}
	return 0;
}
