// The floor: receive and drop.
FromDevice(in) -> Discard;
