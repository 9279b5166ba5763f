// A NAPT with both ways: input and output 0 lead outward, 1 back. The benchmark puts some of them in a row, each
// with another external address, and a mirror behind the last: every packet passes each NAPT twice.
elementclass Stage { $NUMBER |
    input[0]
        -> [0]nat :: IPRewriter(pattern 203.0.113.$NUMBER 1024-65535 - - 0 1, drop)
        -> [0]output;
    input[1] -> [1]nat;
    nat[1] -> [1]output;
}
