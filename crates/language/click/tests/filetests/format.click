// test check flatten format


// leading comment


a::Queue(10,   20)   ;   b   ::   Queue // trailing

  /* before c */ c ::Queue;
InfiniteSource[0]->[0]a->   // to b
   Unqueue
->b;
b->{input->Shaper(5)->output}->{
input -> Null -> // inside
output } -> Unqueue -> d
:: Tee /* d */ [ 0 , 1 ] => Discard ,
   Discard;
elementclass   E{$a,KEY $b|input->Print($a) ->output
||...
}
elementclass F { // first
  // only a comment
}
c->Unqueue->(   input -> output  )->Discard; Idle -> c
// the end
// becomes
== mistakes
format.click:19:3: error: cannot extend unknown element class `E`
== shown
Error: cannot extend unknown element class `E`
    ╭─[ format.click:19:3 ]
    │
 19 │ ||...
    │   ─┬─
    │    ╰─── here
────╯
== graph
a :: Queue(10, 20) h/l
b :: Queue() h/l
c :: Queue() h/l
InfiniteSource@4 :: InfiniteSource() /h
Unqueue@5 :: Unqueue() l/h
@6/Shaper@1 :: Shaper(5) l/l
@7/Null@1 :: Null() l/l
Unqueue@8 :: Unqueue() l/h
d :: Tee() h/hh
Discard@10 :: Discard() h/
Discard@11 :: Discard() h/
Unqueue@12 :: Unqueue() l/h
Discard@16 :: Discard() h/
Idle@17 :: Idle() /h
@6/Shaper@1[0] -> [0]@7/Null@1 @ format.click:13:12
@7/Null@1[0] -> [0]Unqueue@8 @ format.click:14:10
InfiniteSource@4[0] -> [0]a @ format.click:10:1
a[0] -> [0]Unqueue@5 @ format.click:10:23
Unqueue@5[0] -> [0]b @ format.click:11:4
b[0] -> [0]@6/Shaper@1 @ format.click:13:1
Unqueue@8[0] -> [0]d @ format.click:15:13
d[0] -> [0]Discard@10 @ format.click:15:24
d[1] -> [0]Discard@11 @ format.click:15:24
c[0] -> [0]Unqueue@12 @ format.click:24:1
Unqueue@12[0] -> [0]Discard@16 @ format.click:24:4
Idle@17[0] -> [0]c @ format.click:24:46
== formatted
// test check flatten format

// leading comment

a :: Queue(10,   20);
b :: Queue;  // trailing

/* before c */
c :: Queue;
InfiniteSource[0] -> [0]a ->  // to b
    Unqueue
    -> b;
b -> { input -> Shaper(5) -> output } -> {
    input -> Null ->  // inside
        output;
} -> Unqueue -> d :: Tee /* d */ [0, 1] => Discard,
    Discard;
elementclass E {
    $a, KEY $b |
    input -> Print($a) -> output;
||
    ...
}
elementclass F {  // first
    // only a comment
}
c -> Unqueue -> (input -> output) -> Discard;
Idle -> c;
// the end
