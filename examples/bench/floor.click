// The I/O floor: receive and drop.
FromDevice(in) -> Discard;
