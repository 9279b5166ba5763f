// L2 forwarding: each frame goes back to where it came from.
FromDevice(in) -> EtherMirror -> ToDevice(out);
