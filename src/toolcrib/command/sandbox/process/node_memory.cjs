// Node reads its resident memory from /proc/self/stat, which Landlock cannot open for a command without opening /proc of
// all processes: process.memoryUsage() throws, and test runners that call it in a worker wait for an answer for ever.
// `landlock.py` has Node load this file. Where the call fails, the answer is what is known without /proc; `rss` is then
// the most that the process has had so far.
"use strict";
const own = process.memoryUsage;
const rss = () => process.resourceUsage().maxRSS * 1024;

process.memoryUsage = function memoryUsage() {
  try {
    return own();
  } catch {
    const heap = require("v8").getHeapStatistics();
    return {
      rss: rss(),
      heapTotal: heap.total_heap_size,
      heapUsed: heap.used_heap_size,
      external: heap.external_memory,
      arrayBuffers: 0,
    };
  }
};
process.memoryUsage.rss = () => {
  try {
    return own.rss();
  } catch {
    return rss();
  }
};
