"""Which files a command sees and may change, and what is put back of them after it."""
