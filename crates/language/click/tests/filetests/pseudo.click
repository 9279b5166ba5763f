// test check flatten format
elementclass Bad {
  input[1] -> Null -> [2]output;
  Null -> input;
  output -> Null;
}
Idle -> [1]b :: Bad[2] -> Discard;
elementclass Wire { input -> output }
Idle -> w :: Wire [1] -> Discard;
Idle -> [2]w;
elementclass Unused { input -> Discard; input[1] -> Discard }
Idle -> u :: Unused;
(input -> output; input[2] -> Discard);
// becomes
== mistakes
pseudo.click:2:18: error: `Bad` has no input 0, but a later one
pseudo.click:2:18: error: `Bad` has no output 0, but a later one
pseudo.click:2:18: error: `Bad` has no output 1, but a later one
pseudo.click:4:3: error: input 0 of `b/Null@2` is not connected; connect every input, to Idle if need be
pseudo.click:4:3: error: output 0 of `b/Null@2` is not connected; connect every output, to Discard if need be
pseudo.click:4:3: error: `input` is used as an element to send to; `input` stands before an arrow only
pseudo.click:5:3: error: `output` is used as an element to receive from; `output` stands after an arrow only
pseudo.click:5:13: error: input 0 of `b/Null@3` is not connected; connect every input, to Idle if need be
pseudo.click:5:13: error: output 0 of `b/Null@3` is not connected; connect every output, to Discard if need be
pseudo.click:9:9: error: `w` output 0 is not connected
pseudo.click:9:20: error: `w` has no output 1; declared here (pseudo.click:9:9)
pseudo.click:10:10: error: `w` has no input 2; declared here (pseudo.click:9:9)
pseudo.click:12:9: error: `u` input 1 is not connected
pseudo.click:13:1: error: the group has no input 1, but a later one
pseudo.click:13:1: error: the group output 0 is not connected
pseudo.click:13:1: error: the group input 0 is not connected
pseudo.click:13:1: error: the group input 2 is not connected
== shown
Error: `Bad` has no input 0, but a later one
   ╭─[ pseudo.click:2:18 ]
   │
 2 │ elementclass Bad {
   │                  ┬
   │                  ╰── here
───╯
Error: `Bad` has no output 0, but a later one
   ╭─[ pseudo.click:2:18 ]
   │
 2 │ elementclass Bad {
   │                  ┬
   │                  ╰── here
───╯
Error: `Bad` has no output 1, but a later one
   ╭─[ pseudo.click:2:18 ]
   │
 2 │ elementclass Bad {
   │                  ┬
   │                  ╰── here
───╯
Error: input 0 of `b/Null@2` is not connected
   ╭─[ pseudo.click:4:3 ]
   │
 4 │   Null -> input;
   │   ──┬─
   │     ╰─── here
   │
   │ Help: connect every input, to Idle if need be
───╯
Error: output 0 of `b/Null@2` is not connected
   ╭─[ pseudo.click:4:3 ]
   │
 4 │   Null -> input;
   │   ──┬─
   │     ╰─── here
   │
   │ Help: connect every output, to Discard if need be
───╯
Error: `input` is used as an element to send to
   ╭─[ pseudo.click:4:3 ]
   │
 4 │   Null -> input;
   │   ──────┬──────
   │         ╰──────── here
   │
   │ Help: `input` stands before an arrow only
───╯
Error: `output` is used as an element to receive from
   ╭─[ pseudo.click:5:3 ]
   │
 5 │   output -> Null;
   │   ───────┬──────
   │          ╰──────── here
   │
   │ Help: `output` stands after an arrow only
───╯
Error: input 0 of `b/Null@3` is not connected
   ╭─[ pseudo.click:5:13 ]
   │
 5 │   output -> Null;
   │             ──┬─
   │               ╰─── here
   │
   │ Help: connect every input, to Idle if need be
───╯
Error: output 0 of `b/Null@3` is not connected
   ╭─[ pseudo.click:5:13 ]
   │
 5 │   output -> Null;
   │             ──┬─
   │               ╰─── here
   │
   │ Help: connect every output, to Discard if need be
───╯
Error: `w` output 0 is not connected
   ╭─[ pseudo.click:9:9 ]
   │
 9 │ Idle -> w :: Wire [1] -> Discard;
   │         ┬
   │         ╰── here
───╯
Error: `w` has no output 1
   ╭─[ pseudo.click:9:20 ]
   │
 9 │ Idle -> w :: Wire [1] -> Discard;
   │         ┬          ┬
   │         ╰───────────── declared here
   │                    │
   │                    ╰── here
───╯
Error: `w` has no input 2
    ╭─[ pseudo.click:10:10 ]
    │
 10 │ Idle -> [2]w;
    │          ┬
    │          ╰── here
    │
    ├─[ pseudo.click:10:10 ]
    │
  9 │ Idle -> w :: Wire [1] -> Discard;
    │         ┬
    │         ╰── declared here
────╯
Error: `u` input 1 is not connected
    ╭─[ pseudo.click:12:9 ]
    │
 12 │ Idle -> u :: Unused;
    │         ┬
    │         ╰── here
────╯
Error: the group has no input 1, but a later one
    ╭─[ pseudo.click:13:1 ]
    │
 13 │ (input -> output; input[2] -> Discard);
    │ ┬
    │ ╰── here
────╯
Error: the group output 0 is not connected
    ╭─[ pseudo.click:13:1 ]
    │
 13 │ (input -> output; input[2] -> Discard);
    │ ┬
    │ ╰── here
────╯
Error: the group input 0 is not connected
    ╭─[ pseudo.click:13:1 ]
    │
 13 │ (input -> output; input[2] -> Discard);
    │ ┬
    │ ╰── here
────╯
Error: the group input 2 is not connected
    ╭─[ pseudo.click:13:1 ]
    │
 13 │ (input -> output; input[2] -> Discard);
    │ ┬
    │ ╰── here
────╯
== graph
Idle@1 :: Idle() /a
b/Null@1 :: Null() a/a
b/Null@2 :: Null() a/a
b/Null@3 :: Null() a/a
Discard@3 :: Discard() a/
Idle@4 :: Idle() /
Discard@6 :: Discard() a/
Idle@7 :: Idle() /
Idle@8 :: Idle() /a
u/Discard@1 :: Discard() a/
u/Discard@2 :: Discard() a/
Discard@13 :: Discard() a/
b/Null@1[0] -> [0]Discard@3 @ pseudo.click:3:15
Idle@1[0] -> [0]b/Null@1 @ pseudo.click:7:1
Idle@8[0] -> [0]u/Discard@1 @ pseudo.click:12:1
== formatted
// test check flatten format
elementclass Bad {
    input[1] -> Null -> [2]output;
    Null -> input;
    output -> Null;
}
Idle -> [1]b :: Bad[2] -> Discard;
elementclass Wire { input -> output }
Idle -> w :: Wire[1] -> Discard;
Idle -> [2]w;
elementclass Unused { input -> Discard; input[1] -> Discard }
Idle -> u :: Unused;
(input -> output; input[2] -> Discard);
