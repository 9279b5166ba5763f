// Two interfaces, joined both ways.
FromDevice(in) -> there :: Counter -> ToDevice(out);
FromDevice(out) -> back :: Counter -> ToDevice(in);
