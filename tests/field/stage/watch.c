// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// Logs when the screen changes, seen by a client of its own.
//
//     watch damage                  every drawing that reaches the screen, by XDamage of the root window
//     watch pixels PERIOD_MS        looks at the pixels of a region; for screens that a compositing manager draws
//
// A line "X Y WIDTH HEIGHT" on standard input sets the region whose pixels are looked at.
// Output, a line each: CLOCK_MONOTONIC in ns, then the changed region as x, y, width, height.

#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/extensions/XShm.h>
#include <X11/extensions/Xdamage.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void tell(XRectangle region)
{
	printf("%lld %d %d %d %d\n", (long long)now_ns(), region.x, region.y, region.width, region.height);
}

// Waits for the display or standard input; standard input's end ends the program.
static int wait_for(Display *display, int timeout_ms, int *has_line)
{
	struct pollfd files[2] = {{ConnectionNumber(display), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
	fflush(stdout);
	poll(files, 2, timeout_ms);
	*has_line = files[1].revents & POLLIN;
	return (files[1].revents & POLLHUP) && !*has_line ? -1 : 0;
}

static int watch_damage(Display *display)
{
	int event_base, error_base, has_line;
	if (!XDamageQueryExtension(display, &event_base, &error_base))
		return 2;
	XDamageCreate(display, DefaultRootWindow(display), XDamageReportRawRectangles);
	XSync(display, False);
	for (;;) {
		while (XPending(display)) {
			XEvent event;
			XNextEvent(display, &event);
			if (event.type == event_base + XDamageNotify)
				tell(((XDamageNotifyEvent *)&event)->area);
		}
		char line[80];
		if (wait_for(display, -1, &has_line) || (has_line && !fgets(line, sizeof line, stdin)))
			return 0;
	}
}

struct pixels {
	Display *display;
	XShmSegmentInfo segment;
	XImage *image;
	XRectangle region;
	uint32_t *last;
	int known;
};

static int open_pixels(struct pixels *pixels, int width, int height)
{
	Display *display = pixels->display;
	int screen = DefaultScreen(display);
	pixels->image = XShmCreateImage(display, DefaultVisual(display, screen), DefaultDepth(display, screen), ZPixmap,
					NULL, &pixels->segment, width, height);
	if (!pixels->image)
		return 2;
	size_t size = (size_t)pixels->image->bytes_per_line * height;
	pixels->segment.shmid = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
	pixels->segment.shmaddr = pixels->image->data = shmat(pixels->segment.shmid, NULL, 0);
	XShmAttach(display, &pixels->segment);
	XSync(display, False);
	shmctl(pixels->segment.shmid, IPC_RMID, NULL);
	free(pixels->last);
	pixels->last = calloc(1, size);
	pixels->known = 0;
	return pixels->last ? 0 : 2;
}

static void close_pixels(struct pixels *pixels)
{
	if (!pixels->image)
		return;
	XShmDetach(pixels->display, &pixels->segment);
	XSync(pixels->display, False);
	XDestroyImage(pixels->image);
	shmdt(pixels->segment.shmaddr);
	pixels->image = NULL;
}

static void grow(int *low, int *high, int value)
{
	if (value < *low)
		*low = value;
	if (value > *high)
		*high = value;
}

// Compares with the last look, and tells the rectangle around what differs.
static void compare(struct pixels *pixels)
{
	int width = pixels->region.width, height = pixels->region.height;
	int left = width, right = -1, top = height, bottom = -1;
	uint32_t *new = (uint32_t *)pixels->image->data, *old = pixels->last;
	for (int y = 0; y < height; y++, new += width, old += width) {
		if (!memcmp(new, old, 4 * width))
			continue;
		grow(&top, &bottom, y);
		for (int x = 0; x < width; x++)
			if (new[x] != old[x])
				grow(&left, &right, x);
		memcpy(old, new, 4 * width);
	}
	XRectangle changed = {pixels->region.x + left, pixels->region.y + top, right - left + 1, bottom - top + 1};
	if (right >= 0 && pixels->known)
		tell(changed);
	pixels->known = 1;
}

static int set_region(struct pixels *pixels, const char *line)
{
	int x, y, width, height;
	if (sscanf(line, "%d %d %d %d", &x, &y, &width, &height) != 4 || width < 1 || height < 1)
		return 0;
	close_pixels(pixels);
	pixels->region = (XRectangle){x, y, width, height};
	return open_pixels(pixels, width, height);
}

static int watch_pixels(Display *display, int period_ms)
{
	struct pixels pixels = {.display = display};
	int has_line;
	for (;;) {
		if (pixels.image) {
			XShmGetImage(display, DefaultRootWindow(display), pixels.image, pixels.region.x, pixels.region.y, AllPlanes);
			compare(&pixels);
		}
		if (wait_for(display, pixels.image ? period_ms : -1, &has_line))
			return 0;
		char line[80];
		if (has_line && (!fgets(line, sizeof line, stdin) || set_region(&pixels, line)))
			return 0;
	}
}

int main(int count, char **words)
{
	Display *display = XOpenDisplay(NULL);
	if (!display || count < 2)
		return 2;
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	if (!strcmp(words[1], "damage"))
		return watch_damage(display);
	return watch_pixels(display, count > 2 ? atoi(words[2]) : 10);
}
