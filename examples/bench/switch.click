// An L2 switch: each frame goes back to where it came from, by one of two interfaces. The ports that traffic comes from
// are 1024 to 65535: two fifths of them leave at once, and the others go on to further NFs.
FromDevice(in)
    -> CheckIPHeader(OFFSET 14)
    -> EtherMirror
    -> split :: IPClassifier(src port <= 26828, -);
split[0] -> ToDevice(out);
split[1] -> ToDevice(rest);
