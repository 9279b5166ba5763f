// Receive and send, nothing between: what testpmd calls io.
FromDevice(in) -> ToDevice(out);
