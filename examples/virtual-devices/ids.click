// Looks at all that passes. What goes to services that nobody should use any more is suspicious: the DPI gets it.

FromDevice(traffic)
    -> MarkIPHeader(14)
    -> look :: IPClassifier(dst tcp port 23 or 80, -);

look[0] -> suspicious :: Counter -> ToDevice(suspicious);
look[1] -> fine :: Discard;
// The DPI has nothing to say.
FromDevice(suspicious) -> Discard;
