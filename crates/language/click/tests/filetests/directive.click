// test check flatten format
a :: Idle;
# 100 "generated.click"
b :: Idel;
#line 7
c :: Idel2 -> Discard;
// becomes
== mistakes
generated.click:100:6: error: unknown element class `Idel`; did you mean `Idle`?
directive.click:7:6: error: unknown element class `Idel2`
== shown
Error: unknown element class `Idel`
   ╭─[ directive.click:4:6 ]
   │
 4 │ b :: Idel;
   │      ──┬─
   │        ╰─── here
   │
   │ Help: did you mean `Idle`?
   │
   │ Note: by a #line directive this is generated.click:100:6
───╯
Error: unknown element class `Idel2`
   ╭─[ directive.click:6:6 ]
   │
 6 │ c :: Idel2 -> Discard;
   │      ──┬──
   │        ╰──── here
   │
   │ Note: by a #line directive this is directive.click:7:6
───╯
== graph
a :: Idle() /
Discard@4 :: Discard() a/
