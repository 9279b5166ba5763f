// test check flatten format
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
// becomes
== mistakes
== graph
a :: Queue(5) h/l
b :: Queue(5) h/l
c :: Queue(5) h/l
s :: InfiniteSource(DATA \<00 11 22)>, LIMIT 5) /h
t :: Tee() h/hhh
rr :: RoundRobinSched() lll/l
Unqueue@7 :: Unqueue() l/h
cl :: Classifier(0/00, 0/01, -) h/hhh
Paint@9 :: Paint(0) h/h
Paint@10 :: Paint(1) h/h
Paint@11 :: Paint(2) h/h
d :: Discard() h/
FromDevice@13 :: FromDevice(eth0) /h
x :: Classifier(1/1, 1/2) h/hh
Paint@18 :: Paint(1) h/h
Discard@19 :: Discard() h/
y :: Idle() /a
Discard@24 :: Discard() a/
z :: Switch() h/hhh
Discard@29 :: Discard() h/
n :: Null() h/h
Discard@31 :: Discard() h/
Idle@32 :: Idle() /h
e :: Tee() h/hh
Discard@34 :: Discard() h/
Discard@35 :: Discard() h/
Idle@36 :: Idle() /h
s[0] -> [0]t @ shorthand.click:3:1
t[0] -> [0]a @ shorthand.click:4:1
t[1] -> [0]b @ shorthand.click:4:8
t[2] -> [0]c @ shorthand.click:4:14
a[0] -> [0]rr @ shorthand.click:5:1
b[0] -> [1]rr @ shorthand.click:5:4
c[0] -> [2]rr @ shorthand.click:5:7
rr[0] -> [0]Unqueue@7 @ shorthand.click:6:1
Unqueue@7[0] -> [0]cl @ shorthand.click:6:7
cl[0] -> [0]Paint@9 @ shorthand.click:8:1
cl[1] -> [0]Paint@10 @ shorthand.click:8:1
cl[2] -> [0]Paint@11 @ shorthand.click:8:1
Paint@9[0] -> [0]d @ shorthand.click:8:7
Paint@10[0] -> [0]d @ shorthand.click:8:17
Paint@11[0] -> [0]d @ shorthand.click:8:27
FromDevice@13[0] -> [0]x @ shorthand.click:9:1
Paint@18[0] -> [0]Discard@19 @ shorthand.click:9:85
x[0] -> [0]Discard@19 @ shorthand.click:9:21
x[1] -> [0]Paint@18 @ shorthand.click:9:21
y[0] -> [0]Discard@24 @ shorthand.click:10:1
z[0] -> [0]Discard@29 @ shorthand.click:11:1
z[1] -> [0]n @ shorthand.click:11:1
z[2] -> [0]Discard@29 @ shorthand.click:11:1
n[0] -> [0]Discard@31 @ shorthand.click:12:1
Idle@32[0] -> [0]z @ shorthand.click:12:15
e[0] -> [0]Discard@34 @ shorthand.click:13:1
e[1] -> [0]Discard@35 @ shorthand.click:13:1
Idle@36[0] -> [0]e @ shorthand.click:14:1
== formatted
// test check flatten format
a, b, c :: Queue(5);
s :: InfiniteSource(DATA \<00 11 22)>, LIMIT 5) -> t :: Tee;
t[0], t[1], t[2] => a, b, c;
a, b, c => [0, 1]rr :: RoundRobinSched, [2]rr;
rr -> Unqueue -> cl :: Classifier(0/00, 0/01,
  -);
cl => Paint(0), Paint(1), Paint(2) -> d :: Discard;
FromDevice(eth0) -> x :: Classifier(1/1, 1/2) => (input[0] -> output; input[1] -> Paint(1) -> output) -> Discard;
y :: Idle -> (->) -> Discard;
z :: Switch[0-2] => ([0] -> [0]; [1] -> [1]; [2] -> [0]) => Discard, n :: Null;
n -> Discard;
Idle -> z;
e :: Tee[] => Discard, Discard;
Idle -> e;
