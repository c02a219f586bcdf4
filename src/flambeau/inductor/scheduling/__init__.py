"""Which nodes share a kernel, in which order launches run, and where buffers lie."""
