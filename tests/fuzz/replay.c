/* replay FOLDER: runs a fuzz target once for every file of the folder, and prints TAP. */
#include "fuzz.h"

#include <dirent.h>
#include <string.h>

#define MAX_FILE_BYTES (1u << 20)

int main(int argc, char **argv)
{
	struct dirent **names;
	int n = argc == 2 ? scandir(argv[1], &names, NULL, alphasort) : -1;
	int n_files = 0;

	if (n < 0) {
		perror(argc == 2 ? argv[1] : "usage: replay FOLDER");
		return 1;
	}
	uint8_t *file = malloc(MAX_FILE_BYTES);
	for (int i = 0; i < n; i++) {
		char path[4096];
		snprintf(path, sizeof(path), "%s/%s", argv[1], names[i]->d_name);
		FILE *f = names[i]->d_name[0] == '.' ? NULL : fopen(path, "rb");
		free(names[i]);
		if (!f)
			continue;
		size_t n_bytes = fread(file, 1, MAX_FILE_BYTES, f);
		fclose(f);
		/* The last one named is the one that did it. */
		printf("# %s\n", path);
		fflush(stdout);
		/* A block of its exact size, so that reading beyond it shows. */
		uint8_t *exact = malloc(n_bytes ? n_bytes : 1);
		memcpy(exact, file, n_bytes);
		LLVMFuzzerTestOneInput(exact, n_bytes);
		free(exact);
		n_files++;
	}
	free(names);
	free(file);
	printf("%s 1 - %d files of the corpus do no harm\n1..1\n", n_files ? "ok" : "not ok", n_files);
	return n_files == 0;
}
