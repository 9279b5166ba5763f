// test check flatten format
a :: Idle -> Discard;
/* never closed
b :: Idle
// becomes
== mistakes
unclosed-comment.click:3:1: error: comment is never closed; close it with `*/`
== shown
Error: comment is never closed
   ╭─[ unclosed-comment.click:3:1 ]
   │
 3 │ /* never closed
   │ ─┬
   │  ╰── opened here
   │
   │ Help: close it with `*/`
───╯
== graph
a :: Idle() /a
Discard@2 :: Discard() a/
a[0] -> [0]Discard@2 @ unclosed-comment.click:2:1
