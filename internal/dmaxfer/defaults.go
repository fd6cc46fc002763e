package dmaxfer

// DefaultWindow is the memory, in bytes, that the DPU side registers with hardware where neither chunk nor depth is given, the device
// allows it, and the file is not small.
const DefaultWindow = distantChunk * distantSlots
