// test check flatten format
InfiniteSource -> a :: Null -> Queue -> b :: Null -> Discard;
FromDevice(eth0) -> ToDevice(eth1);
Queue -> Counter -> ToDevice(eth0);
q :: Queue -> Discard;
q -> Discard;
Idle -> q;
FromDevice(eth0) -> mixed :: Null -> mixed2 :: Counter -> ToDevice(eth0);
t :: FromDevice(eth2);
t -> Discard; t -> Discard;
s :: Suppressor;
FromDevice(eth3) -> [0]s[0] -> Discard;
Queue -> [1]s[1] -> ToDevice(eth3);
Null[3] -> Discard;
Idle -> [1]Discard;
// becomes
== mistakes
pushpull.click:3:1: error: push output 0 of `FromDevice@6` connected to pull input 0 of `ToDevice@7`; output 0 of `FromDevice@6` is push (pushpull.click:3:1); input 0 of `ToDevice@7` is pull (pushpull.click:3:21); put a Queue between them
pushpull.click:4:1: error: input 0 of `Queue@8` is not connected; connect every input, to Idle if need be
pushpull.click:8:21: error: push output 0 of `mixed` connected to pull input 0 of `mixed2`; output 0 of `mixed` is push, because output 0 of `FromDevice@15` is (pushpull.click:8:21); input 0 of `mixed2` is pull, because input 0 of `ToDevice@18` is (pushpull.click:8:38); put a Queue between them
pushpull.click:10:15: error: push output 0 of `t` is connected twice; first connected here (pushpull.click:10:1); put a Tee after it to send every packet to both
pushpull.click:13:1: error: input 0 of `Queue@25` is not connected; connect every input, to Idle if need be
pushpull.click:14:1: error: input 0 of `Null@27` is not connected; connect every input, to Idle if need be
pushpull.click:14:1: error: output 0 of `Null@27` is not connected; connect every output, to Discard if need be
pushpull.click:14:6: error: `Null@27` has no output 3; declared here (pushpull.click:14:1); Null has one output
pushpull.click:15:10: error: `Discard@30` has no input 1; declared here (pushpull.click:15:12); Discard has one input
pushpull.click:15:12: error: input 0 of `Discard@30` is not connected; connect every input, to Idle if need be
== shown
Error: push output 0 of `FromDevice@6` connected to pull input 0 of `ToDevice@7`
   ╭─[ pushpull.click:3:1 ]
   │
 3 │ FromDevice(eth0) -> ToDevice(eth1);
   │ ─────┬────────┬─────────┬───
   │      ╰──────────────────────── output 0 of `FromDevice@6` is push
   │               │         │
   │               ╰─────────────── here
   │                         │
   │                         ╰───── input 0 of `ToDevice@7` is pull
   │
   │ Help: put a Queue between them
───╯
Error: input 0 of `Queue@8` is not connected
   ╭─[ pushpull.click:4:1 ]
   │
 4 │ Queue -> Counter -> ToDevice(eth0);
   │ ──┬──
   │   ╰──── here
   │
   │ Help: connect every input, to Idle if need be
───╯
Error: push output 0 of `mixed` connected to pull input 0 of `mixed2`
   ╭─[ pushpull.click:8:21 ]
   │
 8 │ FromDevice(eth0) -> mixed :: Null -> mixed2 :: Counter -> ToDevice(eth0);
   │                     ──┬────────┬────────┬──
   │                       ╰────────────────────── output 0 of `mixed` is push, because output 0 of `FromDevice@15` is
   │                                │        │
   │                                ╰───────────── here
   │                                         │
   │                                         ╰──── input 0 of `mixed2` is pull, because input 0 of `ToDevice@18` is
   │
   │ Help: put a Queue between them
───╯
Error: push output 0 of `t` is connected twice
    ╭─[ pushpull.click:10:15 ]
    │
 10 │ t -> Discard; t -> Discard;
    │ ┬             ┬
    │ ╰──────────────── first connected here
    │               │
    │               ╰── here
    │
    │ Help: put a Tee after it to send every packet to both
────╯
Error: input 0 of `Queue@25` is not connected
    ╭─[ pushpull.click:13:1 ]
    │
 13 │ Queue -> [1]s[1] -> ToDevice(eth3);
    │ ──┬──
    │   ╰──── here
    │
    │ Help: connect every input, to Idle if need be
────╯
Error: input 0 of `Null@27` is not connected
    ╭─[ pushpull.click:14:1 ]
    │
 14 │ Null[3] -> Discard;
    │ ──┬─
    │   ╰─── here
    │
    │ Help: connect every input, to Idle if need be
────╯
Error: output 0 of `Null@27` is not connected
    ╭─[ pushpull.click:14:1 ]
    │
 14 │ Null[3] -> Discard;
    │ ──┬─
    │   ╰─── here
    │
    │ Help: connect every output, to Discard if need be
────╯
Error: `Null@27` has no output 3
    ╭─[ pushpull.click:14:6 ]
    │
 14 │ Null[3] -> Discard;
    │ ──┬─ ┬
    │   ╰───── declared here
    │      │
    │      ╰── here
    │
    │ Help: Null has one output
────╯
Error: `Discard@30` has no input 1
    ╭─[ pushpull.click:15:10 ]
    │
 15 │ Idle -> [1]Discard;
    │          ┬ ───┬───
    │          ╰────────── here
    │               │
    │               ╰───── declared here
    │
    │ Help: Discard has one input
────╯
Error: input 0 of `Discard@30` is not connected
    ╭─[ pushpull.click:15:12 ]
    │
 15 │ Idle -> [1]Discard;
    │            ───┬───
    │               ╰───── here
    │
    │ Help: connect every input, to Idle if need be
────╯
== graph
InfiniteSource@1 :: InfiniteSource() /h
a :: Null() h/h
Queue@3 :: Queue() h/l
b :: Null() l/l
Discard@5 :: Discard() l/
FromDevice@6 :: FromDevice(eth0) /h
ToDevice@7 :: ToDevice(eth1) l/
Queue@8 :: Queue() h/l
Counter@9 :: Counter() l/l
ToDevice@10 :: ToDevice(eth0) l/
q :: Queue() h/l
Discard@12 :: Discard() l/
Discard@13 :: Discard() l/
Idle@14 :: Idle() /h
FromDevice@15 :: FromDevice(eth0) /h
mixed :: Null() h/h
mixed2 :: Counter() l/l
ToDevice@18 :: ToDevice(eth0) l/
t :: FromDevice(eth2) /h
Discard@20 :: Discard() h/
Discard@21 :: Discard() h/
s :: Suppressor() hl/hl
FromDevice@23 :: FromDevice(eth3) /h
Discard@24 :: Discard() h/
Queue@25 :: Queue() h/l
ToDevice@26 :: ToDevice(eth3) l/
Null@27 :: Null() a/a
Discard@28 :: Discard() a/
Idle@29 :: Idle() /a
Discard@30 :: Discard() a/
InfiniteSource@1[0] -> [0]a @ pushpull.click:2:1
a[0] -> [0]Queue@3 @ pushpull.click:2:19
Queue@3[0] -> [0]b @ pushpull.click:2:32
b[0] -> [0]Discard@5 @ pushpull.click:2:41
FromDevice@6[0] -> [0]ToDevice@7 @ pushpull.click:3:1
Queue@8[0] -> [0]Counter@9 @ pushpull.click:4:1
Counter@9[0] -> [0]ToDevice@10 @ pushpull.click:4:10
q[0] -> [0]Discard@12 @ pushpull.click:5:1
q[0] -> [0]Discard@13 @ pushpull.click:6:1
Idle@14[0] -> [0]q @ pushpull.click:7:1
FromDevice@15[0] -> [0]mixed @ pushpull.click:8:1
mixed[0] -> [0]mixed2 @ pushpull.click:8:21
mixed2[0] -> [0]ToDevice@18 @ pushpull.click:8:38
t[0] -> [0]Discard@20 @ pushpull.click:10:1
t[0] -> [0]Discard@21 @ pushpull.click:10:15
FromDevice@23[0] -> [0]s @ pushpull.click:12:1
s[0] -> [0]Discard@24 @ pushpull.click:12:24
Queue@25[0] -> [1]s @ pushpull.click:13:1
s[1] -> [0]ToDevice@26 @ pushpull.click:13:13
Null@27[3] -> [0]Discard@28 @ pushpull.click:14:1
Idle@29[0] -> [1]Discard@30 @ pushpull.click:15:1
== formatted
// test check flatten format
InfiniteSource -> a :: Null -> Queue -> b :: Null -> Discard;
FromDevice(eth0) -> ToDevice(eth1);
Queue -> Counter -> ToDevice(eth0);
q :: Queue -> Discard;
q -> Discard;
Idle -> q;
FromDevice(eth0) -> mixed :: Null -> mixed2 :: Counter -> ToDevice(eth0);
t :: FromDevice(eth2);
t -> Discard;
t -> Discard;
s :: Suppressor;
FromDevice(eth3) -> [0]s[0] -> Discard;
Queue -> [1]s[1] -> ToDevice(eth3);
Null[3] -> Discard;
Idle -> [1]Discard;
