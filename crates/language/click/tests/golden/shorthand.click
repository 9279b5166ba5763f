a, b, c :: Queue(5);
s :: InfiniteSource(DATA \<00 11 22)>, LIMIT 5) -> t :: Tee;
t [0], t[1], t [2] => a, b, c;
a, b, c => [0,1]rr :: RoundRobinSched, [2]rr;
rr -> Unqueue -> cl :: Classifier(0/00, 0/01,
  -);
cl => Paint(0), Paint(1), Paint(2) -> d :: Discard;
FromDevice(eth0) -> x :: Classifier(1/1, 1/2) => ( input[0] -> output; input [1] -> Paint(1) -> output ) -> Discard;
y :: Idle -> (->) -> Discard;
z :: Switch [0-2] => ([0] -> [0]; [1] -> [1]; [2] -> [0]) => Discard, n :: Null;
n -> Discard; Idle -> z;
e :: Tee[] => Discard, Discard;
Idle -> e
