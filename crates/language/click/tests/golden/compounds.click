define($A 7, $B "$A eight");
elementclass Twice { $n, PREFIX $p, __REST__ $rest |
  define($both "$n ${n}x");
  input -> Print($both, $rest) -> Print(${p}-${undefined-none}-${rest[1]}, '$n') -> output }
elementclass Outer {
  elementclass Queue { $cap | input -> Queue($cap) -> Shaper($A) -> output || ... }
  input -> Queue(10) -> Queue -> Unqueue -> output;
}
elementclass Sink Discard;
elementclass Over { input -> Discard || input -> output || $a | input -> Paint($a) -> output };
InfiniteSource -> Twice(one, PREFIX two, three, FOUR five) -> Outer -> Over(5) -> Over
  -> { input -> x :: Null -> output } -> { $k | -> Print($k, $(add $k 1)) -> }(9) -> Sink;
Idle -> Over;
Print@12 :: Null;
Idle -> Print@12 -> Print -> Discard;
