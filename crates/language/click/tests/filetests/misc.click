// test check flatten format
a :: Null; Idle -> a -> Discard
elementclass Loop { input -> output } l :: (->) -> l2 :: Null -> Discard;
elementclass D { D2 } elementclass D2 { Idle }
Idle -> Discard -> -> Discard;
elementclass { }
elementclass G [
x :: { $a $b | Idle };
y :: { a, $b | Idle };
Idle => Discard, Discard }
z :: Queue ) ;
v :: $a;
// becomes
== mistakes
misc.click:3:44: error: expected an element class, found `(`
misc.click:4:18: error: unknown element class `D2`
misc.click:5:20: error: expected an element, found `->`
misc.click:6:14: error: expected the name of the new element class, found `{`
misc.click:7:16: error: expected `{` or the name of an element class, found `[`
misc.click:8:6: error: `<anonymous>` takes 1 argument, 0 given; defined here: <anonymous>($a) has 0 inputs and 0 outputs (misc.click:8:8)
misc.click:8:11: error: expected `,` or `|` after the parameter, found `$b`; variables stand in configuration strings only, as in `Queue($capacity)`
misc.click:9:11: error: expected an element, found `$b`; variables stand in configuration strings only, as in `Queue($capacity)`
misc.click:10:26: error: expected a statement, found `}`
misc.click:11:12: error: expected a statement, found `)`
misc.click:12:6: error: expected an element class, found `$a`; variables stand in configuration strings only, as in `Queue($capacity)`
== shown
Error: expected an element class, found `(`
   ╭─[ misc.click:3:44 ]
   │
 3 │ elementclass Loop { input -> output } l :: (->) -> l2 :: Null -> Discard;
   │                                            ┬
   │                                            ╰── here
───╯
Error: unknown element class `D2`
   ╭─[ misc.click:4:18 ]
   │
 4 │ elementclass D { D2 } elementclass D2 { Idle }
   │                  ─┬
   │                   ╰── here
───╯
Error: expected an element, found `->`
   ╭─[ misc.click:5:20 ]
   │
 5 │ Idle -> Discard -> -> Discard;
   │                    ─┬
   │                     ╰── here
───╯
Error: expected the name of the new element class, found `{`
   ╭─[ misc.click:6:14 ]
   │
 6 │ elementclass { }
   │              ┬
   │              ╰── here
───╯
Error: expected `{` or the name of an element class, found `[`
   ╭─[ misc.click:7:16 ]
   │
 7 │ elementclass G [
   │                ┬
   │                ╰── here
───╯
Error: `<anonymous>` takes 1 argument, 0 given
   ╭─[ misc.click:8:6 ]
   │
 8 │ x :: { $a $b | Idle };
   │      ┬ ─┬
   │      ╰───── here
   │         │
   │         ╰── defined here: <anonymous>($a) has 0 inputs and 0 outputs
───╯
Error: expected `,` or `|` after the parameter, found `$b`
   ╭─[ misc.click:8:11 ]
   │
 8 │ x :: { $a $b | Idle };
   │           ─┬
   │            ╰── here
   │
   │ Help: variables stand in configuration strings only, as in `Queue($capacity)`
───╯
Error: expected an element, found `$b`
   ╭─[ misc.click:9:11 ]
   │
 9 │ y :: { a, $b | Idle };
   │           ─┬
   │            ╰── here
   │
   │ Help: variables stand in configuration strings only, as in `Queue($capacity)`
───╯
Error: expected a statement, found `}`
    ╭─[ misc.click:10:26 ]
    │
 10 │ Idle => Discard, Discard }
    │                          ┬
    │                          ╰── here
────╯
Error: expected a statement, found `)`
    ╭─[ misc.click:11:12 ]
    │
 11 │ z :: Queue ) ;
    │            ┬
    │            ╰── here
────╯
Error: expected an element class, found `$a`
    ╭─[ misc.click:12:6 ]
    │
 12 │ v :: $a;
    │      ─┬
    │       ╰── here
    │
    │ Help: variables stand in configuration strings only, as in `Queue($capacity)`
────╯
== graph
a :: Null() a/a
Idle@2 :: Idle() /a
Discard@3 :: Discard() a/
Idle@4 :: Idle() /a
Discard@5 :: Discard() a/
Idle@8 :: Idle() /aa
Discard@9 :: Discard() a/
Discard@10 :: Discard() a/
z :: Queue() h/l
Idle@2[0] -> [0]a @ misc.click:2:12
a[0] -> [0]Discard@3 @ misc.click:2:20
Idle@4[0] -> [0]Discard@5 @ misc.click:5:1
Idle@8[0] -> [0]Discard@9 @ misc.click:10:1
Idle@8[1] -> [0]Discard@10 @ misc.click:10:1
