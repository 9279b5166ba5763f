// test check flatten format
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
// becomes
== mistakes
mistakes.click:2:6: error: unknown element class `Qeue`; did you mean `Queue`?
mistakes.click:3:11: error: `(` is never closed; close the configuration string with `)`
mistakes.click:4:12: error: quote is never closed
mistakes.click:6:1: error: redeclaration of element `d`; first declared here (mistakes.click:5:1)
mistakes.click:7:19: error: undeclared element `undeclared`
mistakes.click:8:6: error: expected an element, found `-`; connections are written `a -> b`
mistakes.click:9:3: error: expected `->`, `;` or another element, found `:`; declarations are written `name :: Class(arguments)`
mistakes.click:11:11: error: `Pair` takes 2 arguments, 1 given; defined here: Pair($a, $b) has 1 input and 1 output (mistakes.click:10:21)
mistakes.click:12:17: error: `Pair` takes 2 positional arguments, this one is too many; defined here: Pair($a, $b) has 1 input and 1 output (mistakes.click:10:21)
mistakes.click:15:1: error: class `Discard` used as the name of an element; choose another name for the element
mistakes.click:16:1: error: element name `12` consists of digits; a name, and each of its parts between slashes, needs a letter
mistakes.click:17:1: error: no element before the arrow; only inside `{ }` or `( )` may a chain start at the input
mistakes.click:18:4: error: expected an element, found `,`
mistakes.click:19:10: error: `->` connects one port to many or many to one; write `=>` to connect the ports of both sides one by one
mistakes.click:20:10: error: 2 outputs connected to 3 inputs; list the same number of ports on both sides of `=>`
mistakes.click:21:17: error: cannot load library `nosuch.click`: no such file
mistakes.click:21:31: error: `require(package)` does not say which package; write `require(package name)`
mistakes.click:21:40: error: `foo bar baz` is not a requirement; write `package NAME` or `library FILE`
mistakes.click:22:8: error: `x` is not a variable; write `define($name value, ...)`
mistakes.click:22:19: error: `$y` is defined twice; first defined here (mistakes.click:22:13)
mistakes.click:23:7: error: expected a port number, found `x`
mistakes.click:24:23: error: cannot extend unknown element class `Ext`
mistakes.click:25:1: error: undeclared element `output`; `output` has a meaning inside `{ }` and `( )` only
mistakes.click:26:3: error: arguments for `d`, which is already declared; write the arguments where the element is declared
mistakes.click:27:1: error: unknown preprocessor directive; a line directive reads `# 12 "file"`; comments start with `//`
== shown
Error: unknown element class `Qeue`
   ╭─[ mistakes.click:2:6 ]
   │
 2 │ a :: Qeue(10);
   │      ──┬─
   │        ╰─── here
   │
   │ Help: did you mean `Queue`?
───╯
Error: `(` is never closed
   ╭─[ mistakes.click:3:11 ]
   │
 3 │ b :: Queue(1, (2);
   │           ┬
   │           ╰── opened here
   │
   │ Help: close the configuration string with `)`
───╯
Error: quote is never closed
   ╭─[ mistakes.click:4:12 ]
   │
 4 │ c :: Print("unclosed);
   │            ┬
   │            ╰── opened here
───╯
Error: redeclaration of element `d`
   ╭─[ mistakes.click:6:1 ]
   │
 6 │ d :: Shaper(5);
   │ ┬
   │ ╰── here
   │
   ├─[ mistakes.click:6:1 ]
   │
 5 │ d :: Queue
   │ ┬
   │ ╰── first declared here
───╯
Error: undeclared element `undeclared`
   ╭─[ mistakes.click:7:19 ]
   │
 7 │ InfiniteSource -> undeclared -> Discard;
   │                   ─────┬────
   │                        ╰────── here
───╯
Error: expected an element, found `-`
   ╭─[ mistakes.click:8:6 ]
   │
 8 │ d -> - > Discard;
   │      ┬
   │      ╰── here
   │
   │ Help: connections are written `a -> b`
───╯
Error: expected `->`, `;` or another element, found `:`
   ╭─[ mistakes.click:9:3 ]
   │
 9 │ x : Queue;
   │   ┬
   │   ╰── here
   │
   │ Help: declarations are written `name :: Class(arguments)`
───╯
Error: `Pair` takes 2 arguments, 1 given
    ╭─[ mistakes.click:11:11 ]
    │
 11 │ p :: Pair(1);
    │           ┬
    │           ╰── here
    │
    ├─[ mistakes.click:11:11 ]
    │
 10 │ elementclass Pair { $a, $b | input -> Print($a) -> output }
    │                     ─┬
    │                      ╰── defined here: Pair($a, $b) has 1 input and 1 output
────╯
Error: `Pair` takes 2 positional arguments, this one is too many
    ╭─[ mistakes.click:12:17 ]
    │
 12 │ q :: Pair(1, 2, 3);
    │                 ┬
    │                 ╰── here
    │
    ├─[ mistakes.click:12:17 ]
    │
 10 │ elementclass Pair { $a, $b | input -> Print($a) -> output }
    │                     ─┬
    │                      ╰── defined here: Pair($a, $b) has 1 input and 1 output
────╯
Error: class `Discard` used as the name of an element
    ╭─[ mistakes.click:15:1 ]
    │
 15 │ Discard :: Queue;
    │ ───┬───
    │    ╰───── here
    │
    │ Help: choose another name for the element
────╯
Error: element name `12` consists of digits
    ╭─[ mistakes.click:16:1 ]
    │
 16 │ 12 :: Queue;
    │ ─┬
    │  ╰── here
    │
    │ Help: a name, and each of its parts between slashes, needs a letter
────╯
Error: no element before the arrow
    ╭─[ mistakes.click:17:1 ]
    │
 17 │ -> Discard;
    │ ─┬
    │  ╰── here
    │
    │ Help: only inside `{ }` or `( )` may a chain start at the input
────╯
Error: expected an element, found `,`
    ╭─[ mistakes.click:18:4 ]
    │
 18 │ d, , Discard;
    │    ┬
    │    ╰── here
────╯
Error: `->` connects one port to many or many to one
    ╭─[ mistakes.click:19:10 ]
    │
 19 │ Tee[0,1] -> Discard, Discard;
    │          ─┬
    │           ╰── many on both sides
    │
    │ Help: write `=>` to connect the ports of both sides one by one
────╯
Error: 2 outputs connected to 3 inputs
    ╭─[ mistakes.click:20:10 ]
    │
 20 │ Tee[0,1] => Discard, Discard, Discard;
    │          ─┬
    │           ╰── here
    │
    │ Help: list the same number of ports on both sides of `=>`
────╯
Error: cannot load library `nosuch.click`: no such file
    ╭─[ mistakes.click:21:17 ]
    │
 21 │ require(library nosuch.click, package, foo bar baz);
    │                 ──────┬─────
    │                       ╰─────── here
────╯
Error: `require(package)` does not say which package
    ╭─[ mistakes.click:21:31 ]
    │
 21 │ require(library nosuch.click, package, foo bar baz);
    │                               ───┬───
    │                                  ╰───── here
    │
    │ Help: write `require(package name)`
────╯
Error: `foo bar baz` is not a requirement
    ╭─[ mistakes.click:21:40 ]
    │
 21 │ require(library nosuch.click, package, foo bar baz);
    │                                        ─────┬─────
    │                                             ╰─────── here
    │
    │ Help: write `package NAME` or `library FILE`
────╯
Error: `x` is not a variable
    ╭─[ mistakes.click:22:8 ]
    │
 22 │ define(x 5, $y 1, $y 2);
    │        ┬
    │        ╰── here
    │
    │ Help: write `define($name value, ...)`
────╯
Error: `$y` is defined twice
    ╭─[ mistakes.click:22:19 ]
    │
 22 │ define(x 5, $y 1, $y 2);
    │             ─┬    ─┬
    │              ╰──────── first defined here
    │                    │
    │                    ╰── here
────╯
Error: expected a port number, found `x`
    ╭─[ mistakes.click:23:7 ]
    │
 23 │ Null [x] -> Discard;
    │       ┬
    │       ╰── here
────╯
Error: cannot extend unknown element class `Ext`
    ╭─[ mistakes.click:24:23 ]
    │
 24 │ elementclass Ext { || ... }
    │                       ─┬─
    │                        ╰─── here
────╯
Error: undeclared element `output`
    ╭─[ mistakes.click:25:1 ]
    │
 25 │ output -> Discard;
    │ ───┬──
    │    ╰──── here
    │
    │ Help: `output` has a meaning inside `{ }` and `( )` only
────╯
Error: arguments for `d`, which is already declared
    ╭─[ mistakes.click:26:3 ]
    │
 26 │ d(5) -> Discard;
    │   ┬
    │   ╰── here
    │
    │ Help: write the arguments where the element is declared
────╯
Error: unknown preprocessor directive
    ╭─[ mistakes.click:27:1 ]
    │
 27 │ # not a directive
    │ ────────┬────────
    │         ╰────────── here
    │
    │ Help: a line directive reads `# 12 "file"`; comments start with `//`
────╯
== graph
b :: Queue(1, (2)) h/l
c :: Print("unclosed);) a/a
d :: Queue() h/l
InfiniteSource@5 :: InfiniteSource() /a
Discard@7 :: Discard() a/
Idle@10 :: Idle() /
Discard@11 :: Discard() a/
Idle@12 :: Idle() /
Discard@13 :: Discard() a/
Discard :: Queue() h/l
12 :: Queue() h/l
Tee@16 :: Tee() h/hh
Discard@17 :: Discard() h/
Discard@18 :: Discard() h/
Tee@19 :: Tee() h/hh
Discard@20 :: Discard() h/
Discard@21 :: Discard() h/
Discard@22 :: Discard() a/
Null@23 :: Null() a/a
Discard@24 :: Discard() a/
Discard@26 :: Discard() a/
Discard@27 :: Discard() l/
Tee@16[0] -> [0]Discard@17 @ mistakes.click:19:1
Tee@16[1] -> [0]Discard@18 @ mistakes.click:19:1
Tee@19[0] -> [0]Discard@20 @ mistakes.click:20:1
Tee@19[1] -> [0]Discard@21 @ mistakes.click:20:1
Null@23[0] -> [0]Discard@24 @ mistakes.click:23:1
d[0] -> [0]Discard@27 @ mistakes.click:26:1
