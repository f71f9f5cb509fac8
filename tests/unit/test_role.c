/* base/role: a thread's role is its own, and a blocking call on a deadline thread ends the process with its name. */
#include "check.h"

#include "base/role.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void *takes_deadline(void *arg)
{
	enum role *seen = arg;
	seen[0] = role_mine();
	role_take(ROLE_DEADLINE);
	seen[1] = role_mine();
	return NULL;
}

static void test_a_role_belongs_to_its_thread(void)
{
	enum role seen[2] = {ROLE_IO, ROLE_IO};
	pthread_t t;
	CHECK_EQ(role_mine(), ROLE_CONTROL);
	role_take(ROLE_IO);
	CHECK_EQ(pthread_create(&t, NULL, takes_deadline, seen), 0);
	pthread_join(t, NULL);
	CHECK_EQ(seen[0], ROLE_CONTROL);
	CHECK_EQ(seen[1], ROLE_DEADLINE);
	CHECK_EQ(role_mine(), ROLE_IO);
	role_take(ROLE_CONTROL);
}

static void may_block(void)
{
	role_forbid(ROLE_DEADLINE);
}

static void test_other_roles_may(void)
{
	may_block();
	role_take(ROLE_IO);
	may_block();
	role_take(ROLE_CONTROL);
	CHECK(true);
}

static void test_deadline_may_not(void)
{
	int fds[2];
	char text[256] = "";
	CHECK_EQ(pipe(fds), 0);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		dup2(fds[1], STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		role_take(ROLE_DEADLINE);
		may_block();
		_exit(0);
	}
	close(fds[1]);
	ssize_t n = read(fds[0], text, sizeof(text) - 1);
	int status = 0;
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CHECK(n > 0 && strstr(text, "may_block"));
	close(fds[0]);
}

int main(void)
{
	CHECK_RUN(test_a_role_belongs_to_its_thread);
	CHECK_RUN(test_other_roles_may);
	CHECK_RUN(test_deadline_may_not);
	return check_end();
}
