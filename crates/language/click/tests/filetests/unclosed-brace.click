// test check flatten format
a :: Queue;
elementclass X {
  input -> Null -> output
b :: Discard;
// becomes
== mistakes
unclosed-brace.click:6:1: error: expected `}`, found the end of the file; `}` is missing for this one (unclosed-brace.click:3:16)
== shown
Error: expected `}`, found the end of the file
   ╭─[ unclosed-brace.click:6:1 ]
   │
 6 │
   │ ┬
   │ ╰── here
   │
   ├─[ unclosed-brace.click:6:1 ]
   │
 3 │ elementclass X {
   │                ┬
   │                ╰── `}` is missing for this one
───╯
== graph
a :: Queue() h/l
