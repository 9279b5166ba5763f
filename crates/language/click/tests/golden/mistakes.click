a :: Qeue(10);
b :: Queue(1, (2);
c :: Print("unclosed);
d :: Queue
d :: Shaper(5);
InfiniteSource -> undeclared -> Discard;
d -> - > Discard;
x : Queue;
elementclass Pair { $a, $b | input -> Print($a) -> output }
p :: Pair(1);
q :: Pair(1, 2, 3);
Idle -> p -> Discard;
Idle -> q [1] -> [3] Discard;
Discard :: Queue;
12 :: Queue;
-> Discard;
d, , Discard;
Tee[0,1] -> Discard, Discard;
Tee[0,1] => Discard, Discard, Discard;
require(library nosuch.click, package, foo bar baz);
define(x 5, $y 1, $y 2);
Null [x] -> Discard;
elementclass Ext { || ... }
output -> Discard;
d(5) -> Discard;
# not a directive
