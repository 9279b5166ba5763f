// Drops what looks like a scan, and gives back the rest by the way it came.

FromDevice(traffic)
    -> CheckIPHeader(14)
    -> scan :: IPFilter(deny tcp opt syn && dst port 22, allow all)
    -> ToDevice(traffic);
