/* The first process of a booted arm64 kernel: runs the tests of core_test that the kernel's command
   line names after "--", each as NAME:SEED:SECONDS, prints the result of each, and powers off. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void mount_at(const char *type, const char *folder)
{
    mkdir(folder, 0755);
    if (mount(type, folder, type, 0, NULL))
        perror(folder);
}

/* The exit code of a test, or 128 + the signal that ended it. */
static int result_of(char *test)
{
    char *name = strtok(test, ":"), *seed = strtok(NULL, ":"), *seconds = strtok(NULL, ":");
    int status = 0;
    pid_t child = fork();
    if (!child) {
        execl("/core_test", "core_test", name, seed, seconds, NULL);
        perror("/core_test");
        _exit(127);
    }
    for (pid_t ended = 0; ended != child && ended >= 0;) /* orphans end here as well */
        ended = waitpid(-1, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int count, char **tests)
{
    mount_at("devtmpfs", "/dev");
    mount_at("proc", "/proc");
    mount_at("sysfs", "/sys");
    mount_at("tmpfs", "/dev/shm");
    mount_at("tmpfs", "/tmp");
    int console = open("/dev/console", O_RDWR);
    for (int descriptor = 0; descriptor < 3; descriptor++)
        dup2(console, descriptor);
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 1; i < count; i++) {
        int result = result_of(tests[i]);
        printf("\nresult %s %d\n", tests[i], result); /* strtok has cut it after the name */
    }
    reboot(RB_POWER_OFF);
    return 1;
}
