package transfer

// maxParallel bounds the copies of push to many peers at once: each has memory, file descriptors and threads.
const maxParallel = 256
