// test check flatten format
require(library queues.click, package ethernet, compact_config);
require(library queues.click);
provide(nothing);
Idle -> Two -> Unqueue -> Bad -> Discard;
// becomes
== mistakes
queues.click:2:29: error: unknown element class `Qeue`; did you mean `Queue`?
== shown
Error: unknown element class `Qeue`
   ╭─[ queues.click:2:29 ]
   │
 2 │ elementclass Bad { input -> Qeue -> output }
   │                             ──┬─
   │                               ╰─── here
   │
   │ Help: did you mean `Queue`?
───╯
== graph
require(package ethernet);
Idle@1 :: Idle() /h
Two@2/Queue@1 :: Queue() h/l
Two@2/Shaper@2 :: Shaper(2000) l/l
Unqueue@3 :: Unqueue() l/h
Discard@5 :: Discard() a/
Two@2/Queue@1[0] -> [0]Two@2/Shaper@2 @ queues.click:1:29
Two@2/Shaper@2[0] -> [0]Unqueue@3 @ queues.click:1:38
Idle@1[0] -> [0]Two@2/Queue@1 @ library.click:5:1
