package dmaxfer

// DefaultWindow is the memory, in bytes, that the DPU side registers where neither chunk nor depth is given and the
// device allows it.
const DefaultWindow = defaultChunk * defaultDepth
