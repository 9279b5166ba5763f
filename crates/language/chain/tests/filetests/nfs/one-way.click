FromDevice(only) -> Counter -> ToDevice(out);
