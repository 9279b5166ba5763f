FromDevice(in) -> Countre -> ToDevice(out);
