"""What a command's own process is put under before it starts: system call filter, Landlock, limits, a supervisor."""
