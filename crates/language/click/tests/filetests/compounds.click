// test check flatten format
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
// becomes
== mistakes
compounds.click:7:55: error: pull output 0 of `Outer@3/Queue@1/Shaper@2` connected to push input 0 of `Outer@3/Queue@2`; output 0 of `Outer@3/Queue@1/Shaper@2` is pull (compounds.click:7:55); input 0 of `Outer@3/Queue@2` is push (compounds.click:8:25); put an Unqueue between them
== shown
Error: pull output 0 of `Outer@3/Queue@1/Shaper@2` connected to push input 0 of `Outer@3/Queue@2`
   ╭─[ compounds.click:7:55 ]
   │
 7 │   elementclass Queue { $cap | input -> Queue($cap) -> Shaper($A) -> output || ... }
   │                                                       ───┬──────┬─────────
   │                                                          ╰────────────────── output 0 of `Outer@3/Queue@1/Shaper@2` is pull
   │                                                                 │
   │                                                                 ╰─────────── here
 8 │   input -> Queue(10) -> Queue -> Unqueue -> output;
   │                         ──┬──
   │                           ╰──── input 0 of `Outer@3/Queue@2` is push
   │
   │ Help: put an Unqueue between them
───╯
== graph
InfiniteSource@1 :: InfiniteSource() /h
Twice@2/Print@1 :: Print("one onex", three, FOUR five) h/h
Twice@2/Print@2 :: Print(two-none-FOUR, '$n') h/h
Outer@3/Queue@1/Queue@1 :: Queue(10) h/l
Outer@3/Queue@1/Shaper@2 :: Shaper(7) l/l
Outer@3/Queue@2 :: Queue() h/l
Outer@3/Unqueue@3 :: Unqueue() l/h
Over@4/Paint@1 :: Paint(5) h/h
@6/x :: Null() h/h
@7/Print@1 :: Print(9, $(add 9 1)) h/h
Sink@8 :: Discard() h/
Idle@9 :: Idle() /a
Over@10/Discard@1 :: Discard() a/
Print@12 :: Null() a/a
Idle@12 :: Idle() /a
Print@13 :: Print() a/a
Discard@14 :: Discard() a/
Twice@2/Print@1[0] -> [0]Twice@2/Print@2 @ compounds.click:5:12
Twice@2/Print@2[0] -> [0]Outer@3/Queue@1/Queue@1 @ compounds.click:5:35
Outer@3/Queue@1/Queue@1[0] -> [0]Outer@3/Queue@1/Shaper@2 @ compounds.click:7:40
Outer@3/Queue@1/Shaper@2[0] -> [0]Outer@3/Queue@2 @ compounds.click:7:55
Outer@3/Queue@2[0] -> [0]Outer@3/Unqueue@3 @ compounds.click:8:25
Outer@3/Unqueue@3[0] -> [0]Over@4/Paint@1 @ compounds.click:8:34
Over@4/Paint@1[0] -> [0]@6/x @ compounds.click:11:74
@6/x[0] -> [0]@7/Print@1 @ compounds.click:13:17
@7/Print@1[0] -> [0]Sink@8 @ compounds.click:13:52
InfiniteSource@1[0] -> [0]Twice@2/Print@1 @ compounds.click:12:1
Idle@9[0] -> [0]Over@10/Discard@1 @ compounds.click:14:1
Idle@12[0] -> [0]Print@12 @ compounds.click:16:1
Print@12[0] -> [0]Print@13 @ compounds.click:16:9
Print@13[0] -> [0]Discard@14 @ compounds.click:16:21
== formatted
// test check flatten format
define($A 7, $B "$A eight");
elementclass Twice {
    $n, PREFIX $p, __REST__ $rest |
    define($both "$n ${n}x");
    input -> Print($both, $rest) -> Print(${p}-${undefined-none}-${rest[1]}, '$n') -> output;
}
elementclass Outer {
    elementclass Queue { $cap | input -> Queue($cap) -> Shaper($A) -> output || ... }
    input -> Queue(10) -> Queue -> Unqueue -> output;
}
elementclass Sink Discard;
elementclass Over { input -> Discard || input -> output || $a | input -> Paint($a) -> output }
InfiniteSource -> Twice(one, PREFIX two, three, FOUR five) -> Outer -> Over(5) -> Over
    -> { input -> x :: Null -> output } -> { $k | -> Print($k, $(add $k 1)) -> }(9) -> Sink;
Idle -> Over;
Print@12 :: Null;
Idle -> Print@12 -> Print -> Discard;
